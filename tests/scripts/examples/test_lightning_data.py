def test_a_data_module_trains(load_script, tmp_path, capsys):
    load_script('examples/lightning_data').main(
        ['--root', str(tmp_path), '--max-steps', '3'])
    assert '3 steps, validation loss ' in capsys.readouterr().out
