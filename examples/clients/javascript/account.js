// What a device has spent: epsilons of all surveys that it answered, added up exactly.
import { add, fraction, isAbove } from "./fraction.js";
import { alone, hex } from "./outbox.js";
import { Refused } from "./refused.js";

const KEY = "fedassay:account";
const NOTHING = { top: 0n, bottom: 1n };

export class Account {
  #store;
  #most;

  /** @param most a fraction: what all surveys together may spend of one unit */
  constructor(store, most) {
    this.#store = store;
    this.#most = most;
  }

  /** For `answer`'s options: charges a survey, or throws `Refused` and charges nothing. */
  charge = (survey) =>
    alone(this.#store, KEY, async () => {
      const charges = [...(await this.#charges()), chargeOf(survey)];
      if (isAbove(spentBy(charges), this.#most)) {
        throw new Refused("this device's account does not allow it: its surveys would spend too much");
      }
      await this.#store.set(KEY, new TextEncoder().encode(JSON.stringify(charges)));
    });

  /** What all surveys so far have spent, as a fraction. */
  async spent() {
    return spentBy(await this.#charges());
  }

  async #charges() {
    const kept = await this.#store.get(KEY);
    return kept ? JSON.parse(new TextDecoder().decode(kept)) : [];
  }
}

function chargeOf({ fingerprint, step, totalEpsilon: { top, bottom } }) {
  const first = step === null || step.isFirst ? fingerprint : step.first;
  const text = bottom === 1n ? `${top}` : `${top}/${bottom}`;
  return { survey: hex(first), step: step === null || step.isFirst ? 1 : 2, epsilon: text };
}

/** Of two surveys that belong together each unit answers one: the larger of both counts. */
function spentBy(charges) {
  const pairs = new Map();
  for (const { survey, step, epsilon } of charges) {
    const both = pairs.get(survey) ?? { 1: NOTHING, 2: NOTHING };
    both[step] = add(both[step], fraction(epsilon, "epsilon"));
    pairs.set(survey, both);
  }
  return [...pairs.values()].map((both) => (isAbove(both[1], both[2]) ? both[1] : both[2])).reduce(add, NOTHING);
}
