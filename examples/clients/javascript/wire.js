// The bytes of reports, version 2; docs/formats.md has the table.
import { check } from "./refused.js";

export const REPORT_ID_BYTES = 16;
export const MOST_BLOCK_BYTES = 2 ** 22;
export const HEADER_FINGERPRINT = 8;
const HEADER_BYTES = 60;
const CRC_BYTES = 4;
const ALL_LEVELS = 255;
const [VERSION, COUNTERS, ROWS] = [2, 0, 2];
const MAGIC = [0x46, 0x41, 0x53, 0x52]; // FASR

/** Locally private reports on one level, one row of bytes each. */
export function encodeRows(fingerprint, reportId, level, rows) {
  return encode({ encoding: ROWS, level, fingerprint, reportId, items: rows.length }, join(rows));
}

/** One client's counters, zeros too, so that the size tells nothing; level null is all levels. */
export function encodeCounters(fingerprint, reportId, level, counters) {
  const body = new DataView(new ArrayBuffer(4 * counters.length));
  counters.forEach((counter, i) => body.setInt32(4 * i, counter, true));
  return encode(
    {
      encoding: COUNTERS,
      level: level ?? ALL_LEVELS,
      fingerprint,
      reportId,
      items: counters.length,
    },
    new Uint8Array(body.buffer),
  );
}

function encode({ encoding, level, fingerprint, reportId, items }, body) {
  const bytes = new Uint8Array(HEADER_BYTES + body.length + CRC_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC, 0);
  bytes.set([VERSION, encoding, level, 0], 4);
  bytes.set(fingerprint, HEADER_FINGERPRINT);
  bytes.set(reportId, 40);
  view.setUint32(56, items, true);
  bytes.set(body, HEADER_BYTES);
  const end = bytes.length - CRC_BYTES;
  view.setUint32(end, crc32(bytes.subarray(0, end)), true);
  return bytes;
}

/** Throw unless untrusted bytes are one message that this survey's tally would accept. */
export function checkMessage(bytes, survey) {
  check(bytes.length >= HEADER_BYTES + CRC_BYTES, "a report has at least 64 bytes; it was cut short");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const [version, encoding, level, reserved] = bytes.subarray(4, 8);
  const items = view.getUint32(56, true);
  check(MAGIC.every((each, i) => bytes[i] === each), "a report begins with FASR");
  check(version === VERSION, `this client knows report version ${VERSION}`);
  check(
    survey.fingerprint.every((each, i) => bytes[HEADER_FINGERPRINT + i] === each),
    "the report answers another survey",
  );
  check(reserved === 0, "the header's reserved byte is 0");
  check(levelsInHeader(survey).includes(level), "the header's level is not one of this survey");
  const isRows = encoding === ROWS;
  check(
    encoding === (survey.isLocal ? ROWS : COUNTERS),
    "the header's encoding is not one of this survey",
  );
  const width = widthOf(survey, level);
  const perItem = isRows ? survey.levels[level].mechanism.rowBytes : 4;
  const length = HEADER_BYTES + items * perItem + CRC_BYTES;
  const allCounters = 2 * survey.levels.reduce((sum, { cells }) => sum + cells, 0);
  const most = HEADER_BYTES + (survey.isLocal ? MOST_BLOCK_BYTES : 4 * allCounters) + CRC_BYTES;
  check(length <= most, `a message to this survey has at most ${most} bytes`);
  check(bytes.length === length, "a report must be as long as its header says");
  const end = length - CRC_BYTES;
  check(crc32(bytes.subarray(0, end)) === view.getUint32(end, true), "the checksum must match");
  if (isRows) {
    for (let at = HEADER_BYTES; at < end; at += perItem) {
      survey.levels[level].mechanism.checkRow(bytes.subarray(at, at + perItem));
    }
  } else {
    check(items === width, `this survey has ${width} counters`);
  }
}

function levelsInHeader(survey) {
  const all = survey.policy.everyLevel && !survey.isLocal;
  return all ? [ALL_LEVELS] : [...survey.levels.keys()];
}

/** How many counters a report on this level has. */
function widthOf(survey, level) {
  const levels = level === ALL_LEVELS ? survey.levels : [survey.levels[level]];
  return 2 * levels.reduce((sum, { cells }) => sum + cells, 0);
}

/** Byte strings one after the other. */
export function join(parts) {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let word = byte;
  for (let i = 0; i < 8; i++) word = word & 1 ? (word >>> 1) ^ 0xedb88320 : word >>> 1;
  return word;
});

/** CRC-32, as zlib has it. */
function crc32(bytes) {
  let word = 0xffffffff;
  for (const byte of bytes) word = (word >>> 8) ^ CRC_TABLE[(word ^ byte) & 0xff];
  return (word ^ 0xffffffff) >>> 0;
}
