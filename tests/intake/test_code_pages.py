"""Code pages: a file in one is read where it is sure, and never in another one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from katha.errors import InputFileError
from katha.intake import noted
from katha.intake.decoding import decode_file
from katha.intake.pages import sure_page
from katha.stories import load_story

TEXTS = {
    "English": (
        ("cp1252", "cp437", "mac_roman"),
        "Nora didn’t want to go to the café. "
        "“Look!” she said – and opened the door. "
        "The dog’s bowl was empty… “Who ate it?” asked Chloë. "
        "Nobody knew. "
        "“It wasn’t me,” said Zoë. "
        "They’d searched the naïve cat’s basket. "
        "It’s gone, and that’s that. "
        "“We’ll bake another,” Nora said. "
        "She’d bought flour – lots of it.",
    ),
    "German": (
        ("cp1252", "cp850", "mac_roman", "iso8859_15"),
        "Der kleine Löwe schlief unter dem Baum. "
        "Plötzlich hörte er ein Geräusch. "
        "Eine Maus lief über seine Pfote. "
        "„Bitte lass mich los“, flehte sie. "
        "Der Löwe lächelte und öffnete die Tatze. "
        "Später fiel er in ein Netz der Jäger. "
        "Die Maus hörte sein Brüllen und nagte die Stricke durch. "
        "So wurde der Größte vom Kleinsten gerettet. "
        "Fünf Mäuse grüßten fröhlich.",
    ),
    "French": (
        ("cp1252", "cp850", "mac_roman", "iso8859_15"),
        "Il était une fois une petite fille qui vivait près de la forêt. "
        "Sa grand-mère était malade. "
        "L’enfant prit un panier de gâteaux et traversa la forêt. "
        "Le loup, caché derrière un chêne, l’aperçut. "
        "Où vas-tu ? demanda-t-il. "
        "Chez ma grand-mère, répondit-elle. "
        "Le loup courut très vite et arriva le premier. "
        "La fenêtre était fermée. "
        "À la fin, le chasseur les sauva.",
    ),
    "Spanish": (
        ("cp1252", "cp850", "mac_roman"),
        "Había una vez un niño que vivía en una montaña. "
        "Una mañana encontró un pájaro herido en el camino. "
        "Lo llevó a su casa y lo cuidó con cariño. "
        "El pájaro cantó una canción. "
        "¿Quieres quedarte? preguntó el niño. "
        "El pájaro voló al árbol más alto. "
        "Después de un año volvió con su compañera. "
        "El niño sonrió y les dio pan.",
    ),
    "Portuguese": (
        ("cp1252",),
        "Era uma vez uma menina que não tinha medo de nada. "
        "Um dia o avô lhe deu uma caixa de maçãs. "
        "A irmã comeu três maçãs e caiu no chão. "
        "O cão correu até à estação. "
        "Lá estava o médico com o pão e a água. "
        "Então a menina abraçou o avô. "
        "No fim da estação chegou o verão.",
    ),
    "Polish": (
        ("cp1250", "iso8859_2"),
        "Była sobie dziewczynka, która mieszkała w małym domku. "
        "Pewnego dnia poszła do lasu po grzyby. "
        "Spotkała tam wilka, który był bardzo głodny. "
        "Dziewczynka dała mu chleb i jabłko. "
        "Wilk zjadł wszystko i podziękował. "
        "Potem razem poszli nad rzekę. "
        "Słońce zachodziło, a łódź płynęła powoli. "
        "Żaba skoczyła na liść i zaśpiewała piosenkę.",
    ),
    "Czech": (
        ("cp1250", "iso8859_2"),
        "Byl jednou jeden malý chlapec, který žil v chaloupce u lesa. "
        "Jednoho dne našel pod stromem zlatý klíč. "
        "Vzal ho domů a ukázal babičce. "
        "Babička řekla, že klíč otevírá starou truhlu. "
        "Truhla byla plná knížek. "
        "Chlapec začal číst a četl celou noc. "
        "Ráno přišel děda a uvařil čaj.",
    ),
    "Hungarian": (
        ("cp1250",),
        "Volt egyszer egy kisfiú, aki egy öreg házban élt. "
        "Egy nap talált egy kulcsot a földön. "
        "A kulcs kinyitotta a régi szekrényt. "
        "A szekrényben egy könyv volt, tele képekkel. "
        "A fiú elolvasta a könyvet és elindult az erdőbe. "
        "Ott találkozott egy őzzel, aki megmutatta az utat a tóhoz. "
        "Hűvös este lett.",
    ),
    "Turkish": (
        ("cp1254",),
        "Bir zamanlar küçük bir kız varmış. "
        "Ormanda yaşlı bir ağacın altında yaşarmış. "
        "Bir gün kapıyı çalan bir tilki gelmiş. "
        "Kız ona ekmek ve süt vermiş. "
        "Tilki teşekkür etmiş ve gitmiş. "
        "Sonra kız bahçede bir altın yumurta bulmuş. "
        "Yumurtayı yaşlı adama götürmüş. "
        "Güneş batmış, yıldızlar çıkmış.",
    ),
    "Russian": (
        ("cp1251", "koi8_r", "cp866", "mac_cyrillic", "iso8859_5"),
        "Жила-была девочка в маленьком доме у леса. "
        "Однажды она нашла в траве золотой ключ. "
        "Девочка открыла старый сундук. "
        "В сундуке лежала книга со сказками. "
        "Она прочитала книгу и пошла в лес. "
        "Там её встретил добрый медведь. "
        "Медведь показал ей дорогу к озеру.",
    ),
    "Ukrainian": (
        ("cp1251",),
        "Жила собі дівчинка в маленькій хатинці біля лісу. "
        "Одного дня вона знайшла в траві золотий ключ. "
        "Дівчинка відчинила стару скриню. "
        "У скрині лежала книга з казками. "
        "Її зустрів добрий ведмідь і показав їй шлях до озера.",
    ),
    "Greek": (
        ("cp1253", "iso8859_7"),
        "Μια φορά κι έναν καιρό ήταν ένα μικρό κορίτσι που ζούσε κοντά στο δάσος. "
        "Μια μέρα βρήκε ένα χρυσό κλειδί. "
        "Άνοιξε το παλιό μπαούλο και βρήκε ένα βιβλίο. "
        "Διάβασε το βιβλίο και πήγε στη λίμνη. "
        "Εκεί την περίμενε μια αρκούδα.",
    ),
    "Japanese": (
        ("shift_jis", "euc_jp"),
        "昔々、森のそばの小さな家に女の子が住んでいました。"
        "ある日、女の子は草の中で金の鍵を見つけました。"
        "古い箱を開けると、本が入っていました。"
        "女の子は本を読んで、湖へ行きました。"
        "そこで優しい熊に会いました。",
    ),
    "Chinese": (
        ("gb18030", "big5"),
        "从前有一个小女孩住在森林旁边的小房子里。"
        "一天她在草地上找到了一把金钥匙。"
        "她打开了旧箱子，里面有一本书。"
        "她读完书以后走到湖边。"
        "在那里她遇到了一只善良的熊。",
    ),
    "Korean": (
        ("cp949",),
        "옛날 옛적에 숲 옆의 작은 집에 한 소녀가 살고 있었습니다. "
        "어느 날 소녀는 풀밭에서 황금 열쇠를 발견했습니다. "
        "낡은 상자를 열자 책이 한 권 있었습니다. "
        "소녀는 책을 읽고 호수로 갔습니다.",
    ),
    "Swedish": (
        ("cp1252",),
        "Det var en gång en liten flicka som bodde nära skogen. "
        "En dag hittade hon en gyllene nyckel i gräset. "
        "Hon öppnade den gamla kistan och där låg en bok. "
        "Flickan läste boken och gick till sjön. "
        "Där mötte hon en snäll björn. "
        "På kvällen åt de ärtsoppa.",
    ),
    "Romanian": (
        ("cp1250",),
        "Era odată o fetiţă care locuia lângă pădure. "
        "Într-o zi a găsit o cheie de aur în iarbă. "
        "A deschis lada veche şi a găsit o carte. "
        "Fetiţa a citit cartea şi a plecat spre lac. "
        "Acolo a întâlnit un urs bun, care i-a arătat drumul.",
    ),
    "Italian": (
        ("cp1252",),
        "C’era una volta una bambina che abitava vicino al bosco. "
        "Un giorno trovò una chiave d’oro nell’erba. "
        "Aprì il vecchio baule e c’era un libro. "
        "La bambina lesse il libro e andò al lago. "
        "Lì incontrò un orso buono. "
        "La città era lontana, perché nessuno parlò più.",
    ),
}
"""A story by language, with the code pages that are usual for it."""
CASES = [(name, page) for name, (pages, _) in TEXTS.items() for page in pages]


@pytest.mark.parametrize(("name", "page"), CASES)
def test_a_story_is_read_in_its_own_page_or_in_none(name: str, page: str) -> None:
    whole = TEXTS[name][1].encode(page, "ignore").decode(page)
    ends = [found.end() for found in re.finditer(r"[.\u3002]", whole)]
    for end in ends:
        data = whole[:end].encode(page)
        if not data.isascii():
            found = sure_page(data)
            assert found is None or data.decode(found) == whole[:end]


@pytest.mark.parametrize(
    ("name", "page"), [one for one in CASES if one not in (("English", "cp437"), ("Greek", "cp1253"))]
)
def test_a_story_of_eight_sentences_is_read(name: str, page: str, tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes(TEXTS[name][1].encode(page, "ignore"))
    assert decode_file(path, limit=10_000).text == TEXTS[name][1].encode(page, "ignore").decode(page)


def test_the_page_is_told_and_few_signs_are_none(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes(TEXTS["English"][1].encode("cp1252"))
    assert "Read in the code page cp1252" in noted(load_story(str(path)))[0]
    path.write_bytes("Zo\u00eb opened the caf\u00e9. A dog ran in.".encode("cp1252"))
    with pytest.raises(InputFileError, match=r"is not UTF-8 text \(byte 2\).*--encoding"):
        load_story(str(path))


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(128, 256)) * 4,
        b"the fox and the hen \x81\x8d\x8f\x90\x9d\x81 said it was",
        "the caf\u00e9 and the na\u00efve fox \u2013 \u201cit\u2019s\u201d".encode() + b" \xe9\xe9 of the hen",
    ],
    ids=["every byte", "no letters", "UTF-8 that is damaged"],
)
def test_what_reads_well_in_no_page_is_none(data: bytes) -> None:
    assert sure_page(data) is None
