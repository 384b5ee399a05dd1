// Exact draws from the platform's randomness: uniform whole numbers, nothing else.
import { fillRandom } from "./platform.js";

const POOL_BYTES = 2 ** 16;

export class Dice {
  #pool = new DataView(new ArrayBuffer(POOL_BYTES));
  #used = POOL_BYTES;

  /** Where the next so many unused bytes of the pool begin; they are never used again. */
  #take(count) {
    if (this.#used + count > POOL_BYTES) {
      fillRandom(new Uint8Array(this.#pool.buffer));
      this.#used = 0;
    }
    this.#used += count;
    return this.#used - count;
  }

  /** A fair coin, 0 or 1. */
  bit() {
    return this.#pool.getUint8(this.#take(1)) & 1;
  }

  /** A uniform whole number below 2^24. */
  word24() {
    const at = this.#take(3);
    return (this.#pool.getUint16(at) << 8) | this.#pool.getUint8(at + 2);
  }

  /** A uniform whole number below 2^32. */
  word32() {
    return this.#pool.getUint32(this.#take(4));
  }

  /** A uniform whole number below 2^64, as a BigInt. */
  word64() {
    return this.#pool.getBigUint64(this.#take(8));
  }

  /** A uniform whole number below a limit of at most 2^32, by rejection. */
  below(limit) {
    const ceiling = Math.floor(2 ** 32 / limit) * limit;
    for (;;) {
      const word = this.word32();
      if (word < ceiling) return word % limit;
    }
  }

  /** So many random bytes. */
  bytes(count) {
    const drawn = new Uint8Array(count);
    fillRandom(drawn);
    return drawn;
  }

  /** Put a list into uniformly random order, in place (Fisher and Yates). */
  shuffle(list) {
    for (let last = list.length - 1; last > 0; last--) {
      const other = this.below(last + 1);
      [list[last], list[other]] = [list[other], list[last]];
    }
    return list;
  }
}
