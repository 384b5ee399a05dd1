// One survey on each line of standard input; its fingerprint, or why it is refused, on each of
// standard output.
import { createInterface } from "node:readline";
import { Refused, readSurvey } from "../../examples/clients/javascript/client.js";

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const { fingerprint } = await readSurvey(new TextEncoder().encode(line));
    console.log(Buffer.from(fingerprint).toString("hex"));
  } catch (error) {
    // Anything else is a bug of the client, and ends the process.
    if (!(error instanceof Refused)) throw error;
    console.log(`refused: ${error.message}`);
  }
}
