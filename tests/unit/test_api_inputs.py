"""What the door understands or refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from fedassay import Assessment, DecodeOptions, Grid, Tally
from fedassay.api_inputs import as_assessment, as_groups
from fedassay.errors import FileInvalid, SettingInvalid
from tests.surveys import flat_survey


def test_a_text_is_not_a_list_of_groups() -> None:
    with pytest.raises(SettingInvalid, match=r"groups are a list of values; found 'FM'"):
        as_groups({"sex": "FM"})


@pytest.mark.parametrize("counts", [[4, 3, 2, 1, 0, 0, 0, 0], [4, 3, 2, 1, 1, 2, 3, 4]])
def test_a_figure_that_was_put_into_a_file_or_taken_out_is_noticed(
    counts: list[int], tmp_path: Path
) -> None:
    """Of one class alone there is no ROC AUC, of both there is."""
    path, survey = tmp_path / "assessment.json", flat_survey(Grid.uniform(4))
    tally = Tally(survey.fingerprint, (2,), np.array(counts))
    Assessment(survey, tally, DecodeOptions()).save(path)
    assert as_assessment(path).reports == 2
    content = json.loads(path.read_text())
    has_none = content["estimates"]["roc_auc"]["value"] is None
    assert has_none is (sum(counts[4:]) == 0)
    content["estimates"]["roc_auc"]["value"] = 0.9 if has_none else None
    path.write_text(json.dumps(content))
    with pytest.raises(FileInvalid, match=r"follow from its counters; these do not"):
        as_assessment(path)
