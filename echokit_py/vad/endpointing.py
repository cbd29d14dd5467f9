"""Decides from speech probabilities where an utterance begins and ends. Knows no audio, no model and no clock.

Time is counted in frames of `FRAME_MS`, so that a late packet or a slow machine never shortens a pause.
"""

from __future__ import annotations

from enum import StrEnum

from echokit_py.config.settings import VadSettings
from echokit_py.vad.base import FRAME_SECONDS

# Whole milliseconds add up exactly, which 0.032 s does not.
FRAME_MS = round(FRAME_SECONDS * 1000)

# The board gives up when it has heard nothing from us for 10 s, and sends 512 ms at a time: 8 s leave it time to
# hear that nobody spoke. (The Rust server waits 5 s, too short for someone who thinks before asking.)
NO_SPEECH_MS = 8_000

# A word may begin with a sound that is hardly speech to the detector ("t", "s", "w"): its probability then rises for
# up to three frames before it reaches the threshold. While it does, from a tenth of the threshold on, the end waits.
ONSET_SHARE = 0.1
ONSET_FRAMES = 3

# How long the probability falls when speech in noise is over, in frames. A detector that hears speech for longer where
# nothing is audible hears what the noise hides.
TAIL_FRAMES = 10
# Speech fades into the noise: it lasts a frame longer than it can be told from it.
FADE_FRAMES = 1
# A sound of speech lasts this many frames at least; a click, or a chance of the noise, is shorter.
SOUND_FRAMES = 2


class EndpointEvent(StrEnum):
    """What a frame brought about. The value names it in logs."""

    SPEECH_STARTED = "speech_started"  # the first speech of the utterance; it may still prove to be noise
    SPEECH_PAUSED = "speech_paused"  # max_silence_duration_ms without speech: what was said so far may be recognised
    SPEECH_RESUMED = "speech_resumed"  # speech after SPEECH_PAUSED: what was begun then is out of date
    SPEECH_ENDED = "speech_ended"  # hangover_ms without speech: the utterance is over
    UTTERANCE_FULL = "utterance_full"  # max_utterance_s from the first speech on: over, though speech goes on
    NO_SPEECH = "no_speech"  # nobody spoke for NO_SPEECH_MS: over, with nothing to recognise

    @property
    def ends(self) -> bool:
        """Whether the utterance is over with this event; frames that follow lead to nothing."""
        return self in _ENDS


_ENDS = frozenset({EndpointEvent.SPEECH_ENDED, EndpointEvent.UTTERANCE_FULL, EndpointEvent.NO_SPEECH})


class Endpointer:
    """The counters of one utterance. Feed it one probability a frame until an event says `ends`.

    - A frame is speech from `threshold` up; once it is, frames down to `exit_threshold` are speech too.
    - `max_silence_duration_ms` without speech close a segment, shorter silence belongs to it.
    - Segments of less than `min_speech_duration_ms` together are noise, and forgotten once the hangover has passed. As
      in the Rust server (src/ai/vad.rs) a segment is counted up to where it closes, with the silence that closes it: at
      400 and 200 ms six frames of speech (192 ms) are a word, five are noise. ("Hello." has twelve, "Stop." fifteen.)
    - Whether there is speech is for the probabilities to say, where it ended is for the noise, if that is known: at
      the last frame in which anything was audible, TAIL_FRAMES back at most.
    - A sound that is audible and more and more like speech, though it does not become it ("t" at the end of "light"),
      puts off the end like speech, but only within one hangover from the last speech on.
    - The hangover is counted from the last speech on. One shorter than `max_silence_duration_ms` is as long as that.
    - It does not end while the probability rises, or while an audible sound that has become more like speech is young,
      for ONSET_FRAMES at most: that is how the next word begins.
    - Another hangover may be set while a pause runs, by whoever knows what was said. It holds for that pause only.

    Args:
        settings: thresholds and times.
        release_s: how long the detector goes on hearing speech that is over, in seconds: that much of the hangover
            has passed when it says so. Where the noise is known it is not needed.
    """

    def __init__(self, settings: VadSettings, release_s: float = 0.0) -> None:
        self._threshold = settings.threshold
        self._exit_threshold = settings.exit_threshold
        self._min_speech = settings.min_speech_duration_ms
        self._max_silence = settings.max_silence_duration_ms
        self._usual_hangover = self._hangover = max(settings.hangover_ms, settings.max_silence_duration_ms)
        self._onset = settings.threshold * ONSET_SHARE
        self._release = round(release_s * 1000)
        self._max_utterance = round(settings.max_utterance_s * 1000)
        # All in ms from the first frame on.
        self._now = 0
        self._start: int | None = None
        self._end = 0  # of the last speech, by all that is known
        self._heard = 0  # the same by the probabilities alone
        self._sound = 0  # of the last that was audible in it
        self._release_now = 0
        self._sounding = 0
        self._grew = False
        self._speech = 0
        self._counted = 0
        self._probability = 0.0
        self._rising = 0
        self._speaking = False
        self._closed = False
        self._over = False

    @property
    def hangover_s(self) -> float:
        """The seconds without speech that end the utterance, at least `max_silence_duration_ms`.

        Set: for the pause that runs. When it is as long already, the next frame without speech ends the utterance.
        """
        return self._hangover / 1000

    @hangover_s.setter
    def hangover_s(self, seconds: float) -> None:
        self._hangover = max(round(seconds * 1000), self._max_silence)

    @property
    def due(self) -> bool:
        """Whether the hangover in force has passed: the next frame without speech ends the utterance."""
        return self.paused and self._passed

    @property
    def paused(self) -> bool:
        """Whether a pause runs: since SPEECH_PAUSED neither speech nor the end came."""
        return self._closed and self._enough and not self._over

    @property
    def elapsed(self) -> float:
        """Seconds of audio taken in."""
        return self._now / 1000

    @property
    def in_speech(self) -> bool:
        """Whether a segment of speech is open: the last speech is less than `max_silence_duration_ms` ago."""
        return self._start is not None and not self._closed

    @property
    def speech_seconds(self) -> float:
        """Seconds of frames that were speech, pauses left out; what was dropped as noise is not in it."""
        return self._speech / 1000

    @property
    def speech_span(self) -> tuple[float, float] | None:
        """Where the first speech begins and the last ends, in seconds from the first frame on; None without speech.

        It holds speech that is still too short to count; it becomes None when that is dropped as noise.
        """
        return None if self._start is None else (self._start / 1000, self._end / 1000)

    def feed(self, probability: float, audible: bool | None = None) -> EndpointEvent | None:
        """Take the speech probability (0..1) of the next frame; return what it brought about.

        `audible`: whether anything in it stands out of the noise; None: not known.
        """
        if self._over:
            return None
        self._now += FRAME_MS
        self._rising = self._rising + 1 if probability > max(self._probability, self._onset) else 0
        self._probability = probability
        was_speaking = self._speaking
        self._speaking = probability >= (self._exit_threshold if was_speaking else self._threshold)
        if self._speaking:
            event = self._on_speech(sounds=not was_speaking or audible is not False)
        else:
            self._place_end(audible, just_now=was_speaking)
            event = self._on_silence()
        if self._start is not None and self._now - self._start >= self._max_utterance:
            event = event if event is not None and event.ends else EndpointEvent.UTTERANCE_FULL
        self._over = event is not None and event.ends
        return event

    def _on_speech(self, *, sounds: bool) -> EndpointEvent | None:
        event = None
        if self._start is None:
            self._start = self._now - FRAME_MS
            event = EndpointEvent.SPEECH_STARTED
        elif self._closed and self._enough:
            event = EndpointEvent.SPEECH_RESUMED
        self._hangover = self._usual_hangover
        self._closed = False
        self._speech += FRAME_MS
        self._counted += FRAME_MS
        self._end = self._heard = self._now
        if sounds:
            self._sound = self._now
        self._sounding, self._grew = 0, False
        return event

    def _place_end(self, audible: bool | None, *, just_now: bool) -> None:
        """Say where the last speech ended, in a frame without: the first after speech (`just_now`) or a later one."""
        self._sounding = self._sounding + 1 if audible else 0
        self._grew = bool(audible) and (self._grew or self._rising > 0)
        if just_now:
            self._release_now = self._release if audible is None else 0
            # Whatever is audible in this frame isn't speech: it says nothing of where the speech before it ended.
            if audible is not None and self._now - self._sound <= TAIL_FRAMES * FRAME_MS:
                self._end = min(self._end, self._sound + FADE_FRAMES * FRAME_MS)
        elif self._grew and self._sounding >= SOUND_FRAMES and self._now - self._heard <= self._usual_hangover:
            self._end = self._now

    def _on_silence(self) -> EndpointEvent | None:
        if self._start is None:
            return self._while_nobody_speaks()
        pauses = False
        if not self._closed:
            self._counted += FRAME_MS
            pauses = self._closed = self._now - self._end >= self._max_silence
        if not self._passed:
            return EndpointEvent.SPEECH_PAUSED if pauses and self._enough else None
        if self._enough:
            return EndpointEvent.SPEECH_ENDED
        self._drop_noise()
        return self._while_nobody_speaks()

    @property
    def _passed(self) -> bool:
        silence = self._now - self._end + self._release_now
        rises = 0 < self._rising <= ONSET_FRAMES
        sounds = self._grew and self._sounding <= ONSET_FRAMES  # and dips on its way to the threshold
        return self._closed and silence >= self._hangover and not rises and not sounds

    @property
    def _enough(self) -> bool:
        return self._counted >= self._min_speech

    def _drop_noise(self) -> None:
        self._start = None
        self._speech = self._counted = 0
        self._closed = False

    def _while_nobody_speaks(self) -> EndpointEvent | None:
        return EndpointEvent.NO_SPEECH if self._now >= NO_SPEECH_MS else None
