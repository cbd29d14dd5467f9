"""The apologies' words in the languages that we have: one short sentence a cause, and a status. Data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said, and what the display shows meanwhile: which part failed, for whoever looks after the server."""

    text: str
    status: str


# By language (ISO 639-1), then by cause.
WORDINGS: dict[str, dict[str, Wording]] = {
    "en": {
        "asr": Wording(
            "Sorry, I can't understand you, because my speech recognition is not working.", "Speech recognition failed"
        ),
        "llm": Wording(
            "Sorry, I can't think right now, because my language model does not answer.", "Language model failed"
        ),
        "tts": Wording("Sorry, I can't answer aloud, because my voice is not working.", "Speech synthesis failed"),
        "tool": Wording("Sorry, I can't do that right now, because a tool does not answer.", "Tool failed"),
        "broke_off": Wording("Sorry, my answer broke off. Please ask me again.", "Answer broke off"),
        "other": Wording("Sorry, something went wrong, please try again in a moment.", "Something failed"),
    },
    "zh": {
        "asr": Wording("抱歉，我的语音识别出了问题，没听懂您说的话。", "语音识别失败"),
        "llm": Wording("抱歉，我的语言模型没有回应，请稍后再试。", "语言模型失败"),
        "tts": Wording("抱歉，我的语音合成出了问题，暂时没法说话。", "语音合成失败"),
        "tool": Wording("抱歉，我用的工具没有回应，请稍后再试。", "工具失败"),
        "broke_off": Wording("抱歉，我的回答中断了，请再问一次。", "回答中断"),
        "other": Wording("抱歉，出了点问题，请稍后再试。", "出错了"),
    },
    "de": {
        "asr": Wording(
            "Entschuldigung, ich verstehe dich nicht, denn meine Spracherkennung ist gestört.",
            "Spracherkennung gestört",
        ),
        "llm": Wording("Entschuldigung, mein Sprachmodell antwortet gerade nicht.", "Sprachmodell gestört"),
        "tts": Wording("Entschuldigung, meine Stimme ist gerade gestört.", "Sprachausgabe gestört"),
        "tool": Wording("Entschuldigung, ein Werkzeug, das ich brauche, antwortet gerade nicht.", "Werkzeug gestört"),
        "broke_off": Wording(
            "Entschuldigung, meine Antwort ist abgebrochen, frag bitte noch einmal.", "Antwort abgebrochen"
        ),
        "other": Wording("Entschuldigung, da ging etwas schief, versuche es bitte gleich noch einmal.", "Störung"),
    },
    "fr": {
        "asr": Wording(
            "Désolé, je ne vous comprends pas, ma reconnaissance vocale est en panne.", "Reconnaissance vocale en panne"
        ),
        "llm": Wording("Désolé, mon modèle de langage ne répond pas pour le moment.", "Modèle de langage en panne"),
        "tts": Wording("Désolé, ma synthèse vocale est en panne pour le moment.", "Synthèse vocale en panne"),
        "tool": Wording("Désolé, un outil dont j'ai besoin ne répond pas pour le moment.", "Outil en panne"),
        "broke_off": Wording("Désolé, ma réponse a été coupée, reposez-moi la question.", "Réponse interrompue"),
        "other": Wording("Désolé, il y a eu un problème, réessayez dans un instant.", "Problème"),
    },
    "es": {
        "asr": Wording(
            "Lo siento, no te entiendo porque mi reconocimiento de voz no funciona.", "Falla el reconocimiento de voz"
        ),
        "llm": Wording("Lo siento, mi modelo de lenguaje no responde en este momento.", "Falla el modelo de lenguaje"),
        "tts": Wording("Lo siento, mi voz no funciona en este momento.", "Falla la síntesis de voz"),
        "tool": Wording(
            "Lo siento, una herramienta que necesito no responde en este momento.", "Falla una herramienta"
        ),
        "broke_off": Wording("Lo siento, mi respuesta se cortó, pregúntame otra vez.", "Respuesta interrumpida"),
        "other": Wording("Lo siento, algo salió mal, inténtalo de nuevo en un momento.", "Algo falló"),
    },
    "it": {
        "asr": Wording(
            "Scusa, non ti capisco perché il mio riconoscimento vocale non funziona.", "Riconoscimento vocale guasto"
        ),
        "llm": Wording(
            "Scusa, il mio modello linguistico non risponde in questo momento.", "Modello linguistico guasto"
        ),
        "tts": Wording("Scusa, la mia voce non funziona in questo momento.", "Sintesi vocale guasta"),
        "tool": Wording("Scusa, uno strumento che mi serve non risponde in questo momento.", "Strumento guasto"),
        "broke_off": Wording("Scusa, la mia risposta si è interrotta, chiedimelo di nuovo.", "Risposta interrotta"),
        "other": Wording("Scusa, qualcosa è andato storto, riprova tra un momento.", "Qualcosa non va"),
    },
    "pt": {
        "asr": Wording(
            "Desculpe, não entendo porque o meu reconhecimento de voz não funciona.", "Falha no reconhecimento de voz"
        ),
        "llm": Wording(
            "Desculpe, o meu modelo de linguagem não responde neste momento.", "Falha no modelo de linguagem"
        ),
        "tts": Wording("Desculpe, a minha voz não funciona neste momento.", "Falha na síntese de voz"),
        "tool": Wording("Desculpe, uma ferramenta de que preciso não responde neste momento.", "Falha numa ferramenta"),
        "broke_off": Wording("Desculpe, a minha resposta foi cortada, pergunte outra vez.", "Resposta interrompida"),
        "other": Wording("Desculpe, algo correu mal, tente de novo daqui a pouco.", "Algo falhou"),
    },
    "ja": {
        "asr": Wording("すみません、音声認識がうまく動かず、聞き取れませんでした。", "音声認識エラー"),
        "llm": Wording("すみません、言語モデルが今応答していません。", "言語モデルエラー"),
        "tts": Wording("すみません、音声合成が今使えません。", "音声合成エラー"),
        "tool": Wording("すみません、必要なツールが今応答していません。", "ツールエラー"),
        "broke_off": Wording("すみません、答えが途中で切れたので、もう一度聞いてください。", "回答が途切れました"),
        "other": Wording("すみません、問題が起きたので、少ししてからもう一度お試しください。", "エラー"),
    },
    "ko": {
        "asr": Wording("죄송해요, 음성 인식에 문제가 있어서 알아듣지 못했어요.", "음성 인식 오류"),
        "llm": Wording("죄송해요, 지금 언어 모델이 응답하지 않아요.", "언어 모델 오류"),
        "tts": Wording("죄송해요, 지금 음성 합성에 문제가 있어요.", "음성 합성 오류"),
        "tool": Wording("죄송해요, 지금 필요한 도구가 응답하지 않아요.", "도구 오류"),
        "broke_off": Wording("죄송해요, 대답이 끊겼으니 다시 물어봐 주세요.", "대답이 끊김"),
        "other": Wording("죄송해요, 문제가 생겼으니 잠시 후 다시 시도해 주세요.", "오류"),
    },
    "ru": {
        "asr": Wording("Извините, я вас не понимаю: распознавание речи не работает.", "Сбой распознавания речи"),
        "llm": Wording("Извините, моя языковая модель сейчас не отвечает.", "Сбой языковой модели"),
        "tts": Wording("Извините, мой голос сейчас не работает.", "Сбой синтеза речи"),
        "tool": Wording("Извините, нужный мне инструмент сейчас не отвечает.", "Сбой инструмента"),
        "broke_off": Wording("Извините, мой ответ оборвался, спросите ещё раз.", "Ответ оборвался"),
        "other": Wording("Извините, что-то пошло не так, попробуйте чуть позже.", "Сбой"),
    },
    "nl": {
        "asr": Wording(
            "Sorry, ik versta je niet, want mijn spraakherkenning werkt niet.", "Spraakherkenning werkt niet"
        ),
        "llm": Wording("Sorry, mijn taalmodel antwoordt op dit moment niet.", "Taalmodel werkt niet"),
        "tts": Wording("Sorry, mijn stem werkt op dit moment niet.", "Spraaksynthese werkt niet"),
        "tool": Wording("Sorry, een hulpmiddel dat ik nodig heb antwoordt nu niet.", "Hulpmiddel werkt niet"),
        "broke_off": Wording("Sorry, mijn antwoord brak af, vraag het me nog eens.", "Antwoord afgebroken"),
        "other": Wording("Sorry, er ging iets mis, probeer het zo nog eens.", "Storing"),
    },
}
