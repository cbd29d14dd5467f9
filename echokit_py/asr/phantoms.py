"""What recognisers make of noise and silence: texts of subtitles that nobody spoke. Data, and how to compare with it.

To be listed here is no reason to drop a text: people say "thank you" as well (`sanity.py` weighs the evidence).

Source: public reports on Whisper (openai/whisper discussions 679 and 928, and the reports of its users' projects), and
what the packaged model makes of noise.
"""

from __future__ import annotations

import re

_TEXTS = """
Thank you | Thanks | Thank you very much | Thank you so much | Thank you all | Thank you for watching
Thanks for watching | Thank you so much for watching | Thank you for watching this video | Thank you for listening
Thanks for watching and see you next time | Thank you for your attention | Please subscribe | Subscribe
Please subscribe to my channel | Please subscribe to the channel | Please like and subscribe | Like and subscribe
Don't forget to like and subscribe | Don't forget to subscribe | See you next time | See you in the next video
I'll see you in the next video | I'll see you next time | See you | Bye | Bye-bye | Goodbye | You | Oh | Okay | So
Uh | Um | Mm | Mmm | Hmm | Mm-hmm | The end | I'm sorry | Music | Silence | Applause | To be continued | www.mooji.org
Satsang with Mooji | For more UN videos visit www.un.org | Transcription by CastingWords | Transcript Emily Beynon

请不吝点赞 订阅 转发 打赏支持明镜与点点栏目 | 請不吝點贊 訂閱 轉發 打賞支持明鏡與點點欄目 | 谢谢 | 謝謝 | 谢谢大家
謝謝大家 | 谢谢观看 | 謝謝觀看 | 谢谢收看 | 謝謝收看 | 感谢观看 | 感謝觀看 | 感谢收看 | 感謝收看 | 谢谢您的观看
多谢您的观看 | 多謝您的觀看 | 谢谢大家的观看 | 下期再见 | 我们下期再见 | 我們下期再見 | 下次再见 | 再见 | 再見 | 拜拜
请订阅 | 请订阅我的频道 | 請訂閱我的頻道 | 中文字幕 | 优优独播剧场 YoYo Television Series Exclusive
優優獨播劇場 YoYo Television Series Exclusive | 嗯 | 啊 | 词曲 李宗盛

ご視聴ありがとうございました | ご清聴ありがとうございました | 最後までご視聴いただきありがとうございます
ありがとうございました | ありがとうございます | チャンネル登録お願いします | チャンネル登録よろしくお願いします
ではまた | おやすみなさい | はい | うん

시청해주셔서 감사합니다 | 시청해 주셔서 감사합니다 | 감사합니다 | 고맙습니다 | 구독과 좋아요 부탁드립니다
다음 영상에서 만나요 | 네 | MBC 뉴스 이덕영입니다 | MBC 뉴스 김재경입니다 | 한글자막 by 한효정

Vielen Dank | Danke | Danke schön | Vielen Dank fürs Zuschauen | Danke fürs Zuschauen | Vielen Dank für's Zuschauen
Bis zum nächsten Mal | Tschüss | Das war's für heute | SWR 2020 | SWR 2021 | WDR 2020 | Copyright WDR 2021 | Musik

Merci | Merci beaucoup | Merci d'avoir regardé | Merci d'avoir regardé cette vidéo | Abonnez-vous | Au revoir
À bientôt | Merci à tous | À la prochaine

Gracias | Muchas gracias | Gracias por ver | Gracias por ver el video | Gracias por ver el vídeo | Suscríbete
Suscríbete al canal | Hasta la próxima | Adiós | Más información www.alimmenta.com

Obrigado | Obrigada | Muito obrigado | Obrigado por assistir | Inscreva-se no canal | Até a próxima | Tchau

Grazie | Grazie mille | Grazie a tutti | Grazie per aver guardato il video | Grazie per la visione
Iscriviti al canale | Alla prossima | Ciao

Bedankt | Dank u wel | Dank je wel | Bedankt voor het kijken | Tot de volgende keer | TV Gelderland 2021

Спасибо | Спасибо за просмотр | Спасибо за внимание | Продолжение следует | Подписывайтесь на канал | До новых встреч
До свидания | Всем пока | Дякую за перегляд | Дякую

Dziękuję | Dziękuję za oglądanie | Dziękuję za uwagę | İzlediğiniz için teşekkür ederim | İzlediğiniz için teşekkürler
Abone olmayı unutmayın | Altyazı M.K. | Tack för att ni tittade | Tack | Tak for at du så med | Terima kasih
Terima kasih telah menonton | اشتركوا في القناة | شكرا للمشاهدة | شكرا | ترجمة نانسي قنقر
Hãy subscribe cho kênh Ghiền Mì Gõ Để không bỏ lỡ những video hấp dẫn
"""
# Credits: what follows is a name.
_CREDITS = """
Subtitles by | Subtitled by | Subtitles made by | Captions by | Captioned by | Captioning by | Transcribed by
Transcription by | Translated by | Untertitel von | Untertitel der Amara.org | Untertitel im Auftrag des
Untertitelung des | Untertitelung aufgrund der | Sous-titres réalisés | Sous-titrage | Sous-titres par
Subtítulos realizados por | Subtítulos por | Legendas pela comunidade | Legendado por | Sottotitoli creati
Sottotitoli e revisione a cura | Ondertitels ingediend door | Ondertiteling | Субтитры сделал | Субтитры создавал
Субтитры делал | Субтитры подогнал | Редактор субтитров | Napisy stworzone przez | Napisy by
Undertexter från Amara.org | Danske tekster af | Textning | 字幕by | 字幕由 | 字幕志愿者 | 字幕志願者 | 字幕製作
字幕制作 | 자막 제공
"""
# Four times the longest of them: a longer text is not looked at.
_LENGTH_MAX = 400
# Credits are short; what goes on for longer is somebody's sentence.
_CREDITS_MAX = 80

_SENTENCE_END = re.compile(r"[.!?…]+(?:\s+|$)|[。！？\n]+")


def letters_of(text: str) -> str:
    """The letters and digits of `text` in small letters, without all that lies between them."""
    return "".join(filter(str.isalnum, text.casefold()))


def _listed(texts: str) -> frozenset[str]:
    return frozenset(letters_of(text) for line in texts.splitlines() for text in line.split("|")) - {""}


_PHANTOMS = _listed(_TEXTS)
_OPENINGS = tuple(_listed(_CREDITS))


def is_phantom(text: str) -> bool:
    """Whether `text` is one of the known texts, or several of them one after the other."""
    if len(text) > _LENGTH_MAX:
        return False
    if _is_listed(text):
        return True
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if letters_of(sentence)]
    return bool(sentences) and all(map(_is_listed, sentences))


def _is_listed(text: str) -> bool:
    letters = letters_of(text)
    return letters in _PHANTOMS or (len(letters) <= _CREDITS_MAX and letters.startswith(_OPENINGS))
