import { quoteWord } from "../../lib/quote-word.ts";
import { escapeText } from "../output/escape.ts";
import type { Output } from "../output/output.ts";

/** Prints the steps of `inlet receive`: as lines for people, or as one JSON object per step. */
export interface Steps {
  /**
   * Prints a step that was taken.
   *
   * @param command command line that does the same
   */
  readonly done: (step: Step, command?: string) => void;
}

export interface Step {
  /** Name of the step in the JSON output, such as `blueprint`. */
  readonly step: string;
  /** Text for people that follows the name of the step. It may be untrusted. */
  readonly text: string;
  /** Members of the JSON object. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

const LABEL_CELLS = 14;

export function createSteps(output: Output): Steps {
  return {
    done({ step, text, facts }, line) {
      // The rest of the line can contain text of the user.
      const command = line?.replace(/^inlet \S+/, output.adapt);
      const object = { step, ...facts, command };
      if (!output.isWanted(object)) return;
      if (output.isJson) output.one(object);
      else {
        const label = step.replace(/^./, (letter) => letter.toUpperCase()).padEnd(LABEL_CELLS);
        output.say(output.paint("bold", label) + escapeText(text));
        if (command !== undefined) output.say(output.paint("dim", `  $ ${escapeText(command)}`));
      }
    },
  };
}

/** Formats a call of the API as a command line. A secret in the body is the value of a shell variable. */
export function formatCall(
  { method, path, body }: { readonly method: string; readonly path: string; readonly body: object },
  secrets: Readonly<Record<string, string>> = {},
): string {
  const json = JSON.stringify(body, (_, value) =>
    typeof value === "string" && Object.hasOwn(secrets, value) ? `\0${secrets[value]}\0` : value,
  );
  const quoted = quoteWord(json).replace(/\\u0000(\w+)\\u0000/g, (_, name) => `'"$${name}"'`);
  return `inlet api ${method} ${path} -d ${quoted}`;
}
