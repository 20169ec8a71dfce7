import { CommandError } from "../exit.ts";

export interface Collected<T> {
  readonly items: readonly T[];
  /** The error that ended the reading. `undefined` if all items were read. */
  readonly failure: CommandError | undefined;
}

/** Collects items until they end or an error of the API, so that a command can show the items that were read before the error. */
export async function collect<T>(all: AsyncIterable<T>): Promise<Collected<T>> {
  const items: T[] = [];
  try {
    for await (const item of all) items.push(item);
    return { items, failure: undefined };
  } catch (failure) {
    if (failure instanceof CommandError) return { items, failure };
    throw failure;
  }
}

export const describeIncomplete = (count: number, what: string, { message }: CommandError): string =>
  `The list of ${what} ${count === 0 ? "cannot be read" : "is incomplete"}: ${message}`;
