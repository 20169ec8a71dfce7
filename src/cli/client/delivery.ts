import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { isQueryMethod } from "../../event/methods.ts";
import { usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import { readBytes } from "../output/prompt.ts";
import { type Api, formatPath } from "./api.ts";

export interface DeliveryOptions {
  readonly data?: string;
  readonly header?: readonly string[];
  readonly query?: string;
  readonly method?: string;
  readonly preset?: string;
}

export interface TypedDelivery {
  readonly method: string;
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly query: string;
  readonly body: Buffer;
}

/** Sample webhook delivery of a provider, as returned by the API. */
export interface Sample {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: string;
}

export const deliveryOptions = (command: Command): Command =>
  command
    .option("-d, --data <data>", "the body: text, @file, or @- for standard input")
    .option("-H, --header <header...>", "a header, as 'Name: value'")
    .option("--method <method>", "HTTP method (default: POST); GET and DELETE have no body")
    .option("--query <query>", "query string without the question mark")
    .option("--preset <name>", "send the provider's sample delivery; other options replace parts of it");

export async function readDelivery(api: Api, io: Io, options: DeliveryOptions): Promise<TypedDelivery> {
  const { data, header = [], query, preset } = options;
  const method = options.method?.toUpperCase() ?? "POST";
  if (isQueryMethod(method)) {
    const headers = Object.fromEntries(header.map(parseHeader));
    return { method, headers, query: query ?? "", body: Buffer.from(data ?? "") };
  }
  const sample =
    preset === undefined
      ? undefined
      : (await api.get<{ readonly sample: Sample }>(formatPath("presets", preset))).sample;
  if (data === undefined && sample === undefined)
    throw usageError("There is no body. Use --data or --preset.");
  return {
    method,
    headers: {
      "content-type": "application/json",
      ...sample?.headers,
      ...Object.fromEntries(header.map(parseHeader)),
    },
    query: query ?? new URLSearchParams(sample?.query).toString(),
    body: data === undefined ? Buffer.from(sample?.body ?? "") : await readData(io, data),
  };
}

/** Inputs that an argument has read to their end. A second argument would get nothing. */
const readInputs = new WeakSet<Io["stdin"]>();

/**
 * Returns the data that a command-line argument names: a file for `@file`, standard input for `@-`, or else the text itself.
 *
 * @throws CommandError if the file cannot be read, or if another argument has read standard input
 */
export async function readData(io: Io, data: string): Promise<Buffer> {
  if (!data.startsWith("@")) return Buffer.from(data);
  if (data === "@-") {
    if (readInputs.has(io.stdin))
      throw usageError(
        "Standard input can be read only once, but several arguments name it (- or @-). Use a file for the others.",
      );
    readInputs.add(io.stdin);
    return readBytes(io.stdin);
  }
  return readFile(data.slice(1)).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`${data.slice(1)} cannot be read (${error.code}).`);
  });
}

export function parseHeader(text: string): readonly [string, string] {
  const { name, value } = /^(?<name>[A-Za-z0-9!#$%&'*+.^_`|~-]+):\s*(?<value>.*)$/s.exec(text)?.groups ?? {};
  if (name === undefined || value === undefined)
    throw usageError(`${text} is not a header; it must look like 'Name: value'.`);
  return [name.toLowerCase(), value.trim()];
}
