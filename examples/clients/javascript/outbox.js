// One answer to a survey, kept before it is sent: a retry sends the same bytes and counts once.
import { answer } from "./client.js";
import { HEADER_FINGERPRINT } from "./wire.js";
import { check } from "./refused.js";

/**
 * Answer a survey, or give back what this device has answered already.
 *
 * The report's id is drawn with its noise, and the bytes are in the store before anybody sends
 * them. Whoever sends these bytes again, after any failure, is counted once.
 *
 * @param store { get(key), set(key, bytes) }, plain or with promises; it outlives the app
 */
export function answerOnce(store, survey, examples, limits, options = {}) {
  const key = `fedassay:${hex(survey.fingerprint)}`;
  return alone(store, key, async () => {
    const kept = await store.get(key);
    if (kept !== undefined && kept !== null) {
      // A new answer would count a second time, and spend a second time.
      check(isAnswerTo(survey, kept), "what was kept of this survey's answer is damaged. Send nothing");
      return kept;
    }
    const report = await answer(survey, examples, limits, options);
    await store.set(key, report);
    return report;
  });
}

/** A store in localStorage, or anything like it: bytes as base64. */
export function textStore(storage) {
  return {
    get(key) {
      const text = storage.getItem(key);
      return text === null ? null : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    },
    set: (key, bytes) => storage.setItem(key, btoa(String.fromCharCode(...bytes))),
  };
}

/** Whether bytes begin like an answer to this survey. */
function isAnswerTo({ fingerprint }, bytes) {
  return fingerprint.every((each, i) => bytes[HEADER_FINGERPRINT + i] === each);
}

/** 32 bytes as 64 digits. */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const waiting = new WeakMap();

/** Do one thing at a time to one key of a store, in this page and, where there are locks, in all. */
export function alone(store, key, act) {
  const locks = globalThis.navigator?.locks;
  const locked = () => (locks ? locks.request(key, act) : act());
  const keys = waiting.get(store) ?? new Map();
  const turn = (keys.get(key) ?? Promise.resolve()).then(locked, locked);
  waiting.set(store, keys.set(key, turn));
  return turn;
}
