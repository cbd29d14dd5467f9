"""Finds the files that a configuration names: beside the configuration first, then in the working directory.

Looks whether files exist; opens none.
"""

from __future__ import annotations

from pathlib import Path

from echokit_py.config.settings import FasterWhisperAsr, LlamaCppLlm, PiperTts, Section, Settings

MISSING_HELLO = "there is no such file; boards are not greeted with a sound"


def find_file(name: str, folder: Path) -> Path | None:
    """Return the file or folder that `name` means, or None when it isn't there.

    `~` is the home folder. A relative name is looked for in `folder` (the configuration's), then in the working
    directory.
    """
    path = _at_home(name)
    candidates = (folder / path, path)  # an absolute path replaces the folder
    return next((candidate.absolute() for candidate in candidates if _exists(candidate)), None)


def resolve_paths(settings: Settings, folder: Path) -> Settings:
    """Return `settings` with the names of existing files made absolute.

    Names of models stay as they are unless a file or folder of that name exists. A `hello_wav` that doesn't exist
    becomes None.
    """
    hello = find_file(settings.hello_wav, folder) if settings.hello_wav else None
    models_dir = str((folder / _at_home(settings.models_dir)).absolute()) if settings.models_dir else None
    return settings.model_copy(
        update={
            "hello_wav": str(hello) if hello else None,
            "models_dir": models_dir,
            "asr": _resolved(settings.asr, "model", folder)
            if isinstance(settings.asr, FasterWhisperAsr)
            else settings.asr,
            "tts": _resolved(settings.tts, "voice", folder) if isinstance(settings.tts, PiperTts) else settings.tts,
            "llm": _resolved(settings.llm, "model", folder) if isinstance(settings.llm, LlamaCppLlm) else settings.llm,
        }
    )


def _at_home(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError:  # "~somebody", whom this machine doesn't know
        return Path(name)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder that this user may not look into, a name that is too long
        return False


def _resolved(section: Section, key: str, folder: Path) -> Section:
    name: str = getattr(section, key)
    looks_like_path = "/" in name or name.startswith("~") or name.endswith((".onnx", ".gguf"))
    found = find_file(name, folder) if looks_like_path else None
    return section.model_copy(update={key: str(found)}) if found else section
