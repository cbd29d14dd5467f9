"""Which texts are known as made up by recognisers."""

from __future__ import annotations

import pytest

from echokit_py.asr.phantoms import is_phantom, letters_of


@pytest.mark.parametrize(
    "text",
    [
        "Thank you.", "thanks for watching!", "THANK YOU FOR WATCHING", "you", "Bye-bye!",
        "Thanks for watching! Please subscribe. Bye.", "Subtitles by the Amara.org community",
        "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目", "請不吝點贊訂閱轉發打賞支持明鏡與點點欄目",
        "谢谢观看。我们下期再见！",
        "ご視聴ありがとうございました。", "시청해 주셔서 감사합니다.", "Vielen Dank.",
        "Sous-titrage Société Radio-Canada",
        "Sous-titres réalisés para la communauté d'Amara.org", "Untertitel im Auftrag des ZDF für funk, 2017",
        "Редактор субтитров А.Семкин Корректор А.Егорова", "Продолжение следует...", "Altyazı M.K.", "字幕by索兰娅",
    ],
)  # fmt: skip
def test_known(text: str) -> None:
    assert is_phantom(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thank you, turn off the light.", "Thank you. Turn off the light.", "Play music", "What time is it?", "", "...",
        "How do I subscribe to a newspaper?", "谢谢你的帮助，现在几点了？",
        "Subtitles by " + "and by " * 20, "Bye. " * 200,
    ],
)  # fmt: skip
def test_not_known(text: str) -> None:
    assert not is_phantom(text)


def test_only_letters_and_digits_are_compared() -> None:
    assert letters_of(" Don't, STOP — 42 ½! 你好。") == "dontstop42½你好"
