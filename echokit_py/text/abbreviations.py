"""Words whose full stop does not end a sentence. Data only; `sentences` decides what follows from it.

All in lower case, without the last dot. A missing word costs a pause in the middle of a sentence, a wrong one joins two
sentences: so the lists are generous, but hold no word that ends sentences every day ("us", "am", "no" have rules).
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Something always follows: titles, "for example", "compare".
ALWAYS_CONTINUED = _words(
    # English
    "mr mrs ms mx messrs dr prof rev hon fr gen col lt sgt capt cmdr maj adm gov sen pres supt insp"
    " e.g i.e eg ie cf viz vs approx esp resp incl excl dept univ attn aka a.k.a w.r.t"
    # German
    " hr hrn frl z.b d.h u.a z.t bzw ca evtl ggf inkl exkl sog vgl str i.d.r m.e o.ä u.u z.zt dipl geb gest"
    " bspw einschl zzgl ehem insb abzgl gegr"
    # French, Spanish, Portuguese, Italian
    " mm mme mmes mlle mlles p.ex c.-à-d env av sr sra srta srs dra ud uds vd p.ej"
    " dott dott.ssa sig sigg sig.ra ing avv"
    # Dutch, Scandinavian, Polish, Czech
    " dhr mevr bijv d.w.z o.a t.o.v f.eks bl.a t.ex ca np m.in tzn tj např"
    # Russian, Hindi
    " ул акад проф डॉ प्रो"
)

# A name follows, unless the next word begins a sentence: "St. Petersburg", "on Main St. The house".
BEFORE_NAMES = _words("st ste mt fa")

# Something follows when it is a number: "No. 5", "p. 12", "Jan. 3".
BEFORE_NUMBERS = _words(
    "no nos nr nº n.º num núm pág págs art abs abb kap bd fig figs eq sec sect ch chap vol vols p pp pg para tab ver ex"
    " op bk pt rm apt ext tel"
    " jan feb mar apr jun jul aug sep sept oct nov dec"
    " janv févr avr juil déc ene abr ago dic okt dez"
    " стр рис табл гл"
)

# The names of months that follow an ordinal number in languages which write "3. Juli", with a capital letter.
MONTHS = _words("januar jänner februar feber märz april mai juni juli august september oktober november dezember")

# Both in the middle and at the end: a capital letter after them begins a sentence.
MAY_END = _words(
    "a.m p.m am pm etc inc ltd co corp bros jr al usw etw u.s.w enz osv atd itd ff cont"
    # units and such of four letters and more, which would pass for words
    " tbsp tbsps tsps temp blvd bldg assn assoc govt misc"
)

# Words that begin sentences and are no names: after an initial they tell "vitamin C. It helps" from "J. R. R. Tolkien".
# In small letters; they count only when written with a capital one.
BEGINNINGS = _words(
    # English
    "the this that these those it he she they we you there then but and if when while because although however also"
    " in on at for with after before since as from both most many some all his her their its our your what how why"
    # German
    " der die das dem den er sie es wir ich ihr dann danach dort hier aber und doch wenn wie was wer wo warum"
    # French, Spanish
    " il elle ils elles nous vous puis mais ce cela él ella ellos pero luego entonces esto"
)
