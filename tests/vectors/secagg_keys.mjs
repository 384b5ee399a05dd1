// Known answers for every derivation and signature of a round of secure aggregation, written from
// docs/formats.md with node's own cryptography; none of fedassay's code takes part.
// node tests/vectors/secagg_keys.mjs > tests/vectors/secagg_keys.json
import {
  createCipheriv, createHash, createPrivateKey, createPublicKey, diffieHellman, hkdfSync, sign,
} from "node:crypto";

const text = (value) => Buffer.from(value, "latin1");
const hash = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest();
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const PURPOSE = text("fedassay secagg 1 ");

const PREFIX = { x25519: "302e020100300506032b656e04220420", ed25519: "302e020100300506032b657004220420" };
const privateKey = (kind, raw) =>
  createPrivateKey({ key: Buffer.concat([Buffer.from(PREFIX[kind], "hex"), raw]), format: "der", type: "pkcs8" });
const publicBytes = (key) => createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32);
const publicKey = (raw) => createPublicKey({
  key: Buffer.concat([Buffer.from("302a300506032b656e032100", "hex"), raw]), format: "der", type: "spki",
});
const agree = (own, other) => diffieHellman({ privateKey: own, publicKey: publicKey(other) });

// HKDF-SHA256 without salt; info = purpose, what it is for, a zero byte, all that it is bound to.
const derive = (secret, purpose, ...bound) => Buffer.from(
  hkdfSync("sha256", secret, Buffer.alloc(0), Buffer.concat([PURPOSE, text(purpose), Buffer.from([0]), ...bound]), 32));

const seal = (agreed, cohort, sender, receiver, shares) => {
  const direction = Buffer.concat([sender, receiver]);
  const key = derive(agreed, "seal", cohort, direction);
  const box = createCipheriv("chacha20-poly1305", key, Buffer.alloc(12), { authTagLength: 16 });
  box.setAAD(Buffer.concat([PURPOSE, cohort, direction]), { plaintextLength: shares.length });
  const sealed = Buffer.concat([box.update(shares), box.final(), box.getAuthTag()]);
  return { key, sealed };
};

const stream = (key, bytes) =>
  createCipheriv("chacha20", key, Buffer.alloc(16)).update(Buffer.alloc(bytes));

// Inputs: hashes of plain words, so that nothing is special about them. Seeds are little-endian.
const input = (word) => hash(text(`fedassay vector ${word}`));
const u32 = (value) => { const b = Buffer.alloc(4); b.writeUInt32LE(value); return b; };
const u16 = (value) => { const b = Buffer.alloc(2); b.writeUInt16LE(value); return b; };

// Terms: "FAST", version 1, pinned or not, fingerprint, round id, length, minimum, colluders,
// corrupt and dropout in a thousand, roster.
const fingerprint = input("fingerprint"), roundId = input("round").subarray(0, 16), roster = input("roster");
const termsBytes = Buffer.concat([
  text("FAST"), Buffer.from([1, 1]), fingerprint, roundId, u32(7), u32(9), u32(2), u16(60), u16(210), roster,
]);
const terms = hash(text("fedassay secagg terms"), termsBytes);

// Cohort: terms, clients, Merkle root, hash of the bitmap of who is present.
const root = input("root"), present = Buffer.from([0b00011111]);
const cohort = hash(text("fedassay secagg cohort"), terms, u32(5), root, hash(present));

const party = (name) => {
  const identity = privateKey("ed25519", input(`${name} identity`));
  const member = publicBytes(identity);
  const maskSeed = input(`${name} mask seed`), selfSeed = input(`${name} self seed`);
  const maskRaw = derive(maskSeed, "mask key", terms), maskKey = privateKey("x25519", maskRaw);
  const sealRaw = input(`${name} seal key`), sealKey = privateKey("x25519", sealRaw);
  const commitment = hash(PURPOSE, text("commitment"), terms, selfSeed);
  const leaf = Buffer.concat([member, publicBytes(maskKey), publicBytes(sealKey), commitment]);
  const announced = Buffer.concat([PURPOSE, text("keys"), Buffer.from([0]), terms, leaf]);
  const survivors = Buffer.from([0b00010111]);
  const agreed = Buffer.concat([PURPOSE, text("survivors"), Buffer.from([0]), cohort, survivors]);
  return {
    name, identity, member, maskSeed, selfSeed, maskRaw, maskKey, sealRaw, sealKey, commitment, leaf, survivors,
    selfMask: derive(selfSeed, "self", cohort, member),
    keysSignature: sign(null, announced, identity), survivorsSignature: sign(null, agreed, identity),
  };
};
const [a, b] = [party("a"), party("b")];
const [first, second] = [a.member, b.member].sort(Buffer.compare);
const pairMask = derive(agree(a.maskKey, publicBytes(b.maskKey)), "pair", cohort, first, second);
const sealAgreed = agree(a.sealKey, publicBytes(b.sealKey));
const shares = Buffer.concat([input("share one"), input("share two")]);
const there = seal(sealAgreed, cohort, a.member, b.member, shares);
const back = seal(sealAgreed, cohort, b.member, a.member, shares);

const places = stream(hash(text("fedassay secagg ring"), cohort), 8 * 5);
const ring = [0, 1, 2, 3, 4].sort((x, y) => (places.readBigUInt64LE(8 * x) < places.readBigUInt64LE(8 * y) ? -1 : 1));

const shown = (p) => ({
  identity: hex(input(`${p.name} identity`)), member: hex(p.member), mask_seed: hex(p.maskSeed),
  self_seed: hex(p.selfSeed), seal_private: hex(p.sealRaw), mask_private: hex(p.maskRaw),
  commitment: hex(p.commitment), leaf: hex(p.leaf), self_mask: hex(p.selfMask),
  keys_signature: hex(p.keysSignature), survivors: hex(p.survivors),
  survivors_signature: hex(p.survivorsSignature),
});
console.log(JSON.stringify({
  made_by: "tests/vectors/secagg_keys.mjs",
  terms: {
    fingerprint: hex(fingerprint), round_id: hex(roundId), roster: hex(roster), length: 7, minimum: 9,
    colluders: 2, corrupt_permille: 60, dropout_permille: 210, bytes: hex(termsBytes), digest: hex(terms),
  },
  cohort: { clients: 5, root: hex(root), present: hex(present), digest: hex(cohort), ring },
  a: shown(a), b: shown(b),
  pair_mask: hex(pairMask), pair_stream: hex(stream(pairMask, 16)),
  seal_agreed: hex(sealAgreed), shares: hex(shares),
  seal_key_there: hex(there.key), seal_key_back: hex(back.key),
  sealed_there: hex(there.sealed), sealed_back: hex(back.sealed),
  named: { name: "hospital", member: hex(hash(text("fedassay secagg name"), text("hospital"))) },
}, null, 1));
