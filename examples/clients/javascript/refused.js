/** The one error of this client: a rule is broken, and nothing was sent. */
export class Refused extends Error {
  name = "Refused";
}

/** Throw `Refused` unless the rule holds. */
export function check(holds, rule) {
  if (!holds) throw new Refused(rule);
}
