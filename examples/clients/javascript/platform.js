// SHA-256 and randomness come from the platform: browsers and node 19 on have them at hand.
const crypto = globalThis.crypto ?? (await import("node:crypto")).webcrypto;

/** The SHA-256 of bytes. */
export async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** Fill an array with random bytes that nobody can predict. */
export function fillRandom(bytes) {
  crypto.getRandomValues(bytes);
}
