"""The catalogue holds together."""

from __future__ import annotations

import re

import pytest

from echokit_py.models.catalogue import CATALOGUE, MODELS, Hub, Model, Wheel


def test_names_are_unique() -> None:
    assert len(CATALOGUE) == len(MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_an_entry_can_be_fetched_and_checked(model: Model) -> None:
    assert model.licence
    assert model.main == "" or model.main in [file.name for file in model.files]
    for file in model.files:
        assert re.fullmatch(r"[\w.\-]+", file.name)
        assert not file.name.startswith(".")
        assert file.size > 0
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256) or (file.sha256 == "" and isinstance(model.source, Hub))
    if isinstance(model.source, Wheel):
        # Installed packages are searched by one folder for all files, under the names they have in the wheel.
        assert len({file.source_path.rpartition("/")[0] for file in model.files}) == 1
        assert all(file.source_path.rpartition("/")[2] == file.name for file in model.files)


def test_the_defaults_of_the_configuration_are_there() -> None:
    assert {"silero-vad", "tiny.en", "en_US-joe-medium", "smollm2-135m"} <= CATALOGUE.keys()
