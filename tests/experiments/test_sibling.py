import pytest

from pyg_fnri.experiments.sibling import load_sibling


def test_the_other_script_of_the_folder_is_loaded(tmp_path):
    (tmp_path / 'other.py').write_text('def main(arguments):\n'
                                       '    return sum(arguments)\n')
    other = load_sibling(str(tmp_path / 'this.py'), 'other')
    assert other.main([1, 2]) == 3
    assert other.__name__ == 'scripts_other'


def test_missing_script_is_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_sibling(str(tmp_path / 'this.py'), 'none')
