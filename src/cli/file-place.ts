import type { Command } from "commander";

/** Names of command arguments and option values that contain a file or folder path. */
const FILES = ["file", "dir"];

/**
 * Returns whether the shell should complete file names, because the last word of a command line is a path.
 *
 * @param words words after the program's name. The last one is being typed and may be empty
 */
export function isFilePlace(program: Command, words: readonly string[]): boolean {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? "";
  let command = program;
  let position = 0;
  let awaited: string | undefined;
  for (const word of before) {
    if (awaited !== undefined) awaited = undefined;
    else if (word.startsWith("-")) awaited = valueNameOf(command, word);
    else {
      const inner = position === 0 && command.commands.find((one) => one.name() === word);
      if (inner) command = inner;
      else position++;
    }
  }
  if (awaited !== undefined) return FILES.includes(awaited);
  if (current.startsWith("-")) return false;
  return FILES.includes(command.registeredArguments[position]?.name() ?? "");
}

/** Returns the name of an option's value, or `undefined` if the option takes no value. */
function valueNameOf(command: Command, word: string): string | undefined {
  const option = command.options.find(({ short, long }) => word === short || word === long);
  return /[<[]([a-z]+)/.exec(option?.flags ?? "")?.[1];
}
