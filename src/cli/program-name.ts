import packageJson from "../../package.json" with { type: "json" };
import { quoteWord } from "../lib/quote-word.ts";
import type { Io } from "./io.ts";

/**
 * Finds commands of this program in a text: at the start of a line, in backticks, or after a shell prompt, colon, variable or operator.
 * In any other place, `inlet` may be the name of an app.
 */
const COMMAND = /(?<=^ *|[`(]|[$:|)] |&& |then |=\S* )inlet(?= [a-z<-])/gm;

/** Matches the npm script or `npx` command line that starts this program, but not that of another program that started it. */
const OWN_SCRIPT = /(?:^|[\s"'/\\])(?:inlet(?:-gateway)?(?:\.js)?|src\/main\.ts)(?=["'\s@]|$)/;

/**
 * Returns how the user starts this program, such as `npx inlet`. npx and `npm start` do not put `inlet` on the user's PATH. Both set
 * `npm_lifecycle_script` for all processes below them. npx also sets `npm_config_package` to the values of its `-p` options.
 */
export function findProgramName(env: Io["env"]): string {
  const { npm_lifecycle_script: script = "", npm_config_package: packages = "" } = env;
  if (!OWN_SCRIPT.test(script)) return "inlet";
  if (packages === "") return `npx ${packageJson.name}`;
  const named = packages.split(/\n+/).map((name) => `-p ${quoteWord(name)}`);
  return `npx ${named.join(" ")} inlet`;
}

/** Adapts the commands `inlet …` in a text, so that the user can copy them. */
export const adaptCommands = (text: string, env: Io["env"]): string => {
  const program = findProgramName(env);
  return program === "inlet" ? text : text.replace(COMMAND, program);
};
