"""Cluster slots: which of the 16,384 a key belongs to, and the hash tags of the shards."""

from binascii import crc_hqx

SLOTS = 16_384

SHARD_TAGS = (
    b"mm I4 9i LY 8D J9 Bl Z5 Hb kv JB iV YC zW IO xw nC MW lc Ow mN rZ "
    b"9J K7 KL zt Il m5 HA kU Ja iu Oi k0 MI 8y Ld op ND x1 jf Ir hF KR "
    b"ik XS yg Zs LG oS Ng ms sJ Br qj i3 iH Xp yD O1 jE IQ he Kq"
).split()
"""The hash tag of each shard: the slots lie within 5 of the middles of 64 equal parts of the range,
so any number of masters with equal shares of the slots get equal shares of the shards. They are
written into every key, so changing one loses data."""


def slot_of(key: bytes) -> int:
    """Return the slot of a key: of its hash tag, the part in the first braces, if it has one."""
    start = key.find(b"{") + 1
    end = key.find(b"}", start)
    if start and end > start:
        key = key[start:end]
    return crc_hqx(key, 0) % SLOTS
