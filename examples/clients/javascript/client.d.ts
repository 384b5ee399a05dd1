/** An exact rational. */
export interface Fraction {
  readonly top: bigint;
  readonly bottom: bigint;
}

/** A survey that was read and checked. */
export interface Survey {
  /** SHA-256 of the survey's canonical JSON: it names the survey in every report. */
  readonly fingerprint: Uint8Array;
  readonly isLocal: boolean;
  /** What one unit spends on this survey; of shuffled reports what each spends alone; null for exact sums. */
  readonly epsilon: Fraction | null;
  /** And on the other one, where it is one of two. */
  readonly totalEpsilon: Fraction | null;
  readonly unit: "example" | "client";
  readonly allowEmpty: boolean;
  readonly modelDigest: string | null;
  /** `minimum_reports` less colluders. */
  readonly honestReports: number;
}

export interface Example {
  label: 0 | 1;
  /** From 0 to 1. */
  score: number;
  /** The second model's score, where the survey asks for two. */
  second?: number;
  /** Where the survey tells groups apart. */
  group?: string | number | boolean | null;
}

/** What the owner of a device allows. */
export interface Limits {
  /** The most that a survey may spend, at most 10; there is no default. */
  largestEpsilon: Fraction;
  smallestCohort?: number;
  /** Models that are assessed; none for any. */
  modelDigests?: string[];
}

export interface Options {
  /** Where levels, or one of two surveys, are drawn by the client's id. */
  clientId?: string;
  /** Called after all checks and before any noise; throws to refuse. */
  charge?: (survey: Survey) => void | Promise<void>;
}

/** Whatever keeps bytes on the device and outlives the app. */
export interface Store {
  get(key: string): Uint8Array | null | undefined | Promise<Uint8Array | null | undefined>;
  set(key: string, bytes: Uint8Array): unknown;
}

/** The one error of this client: a rule is broken, and nothing was sent. */
export class Refused extends Error {}

/** Read "5" or "1/3", in lowest terms; the name is for the message. */
export function fraction(text: string, name: string): Fraction;

/** Read and check a survey file's bytes. */
export function readSurvey(bytes: Uint8Array): Promise<Survey>;

/** Throw `Refused` when a survey asks for more than this client gives. */
export function checkLimits(survey: Survey, limits: Limits): void;

/** All that may leave this client: the bytes of a report file. */
export function answer(
  survey: Survey,
  examples: Example[],
  limits: Limits,
  options?: Options,
): Promise<Uint8Array>;

/** Answer, or give back the bytes that this device has answered with before. */
export function answerOnce(
  store: Store,
  survey: Survey,
  examples: Example[],
  limits: Limits,
  options?: Options,
): Promise<Uint8Array>;

/** A store in localStorage, or anything like it. */
export function textStore(storage: Pick<Storage, "getItem" | "setItem">): Store;

/** What a device has spent on all surveys, and the most that it may. */
export class Account {
  constructor(store: Store, most: Fraction);
  /** For the option of this name. */
  charge: (survey: Survey) => Promise<void>;
  spent(): Promise<Fraction>;
}

/** Whether whoever has this name answers this one of two surveys. */
export function answersStep(survey: Survey, name: string): Promise<boolean>;
