import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { wrongUse } from "../exit.ts";
import type { Io } from "../io.ts";
import { readBytes } from "../output/prompt.ts";
import { type Api, pathOf } from "./api.ts";

/** A delivery as it is typed. */
export interface DeliveryOptions {
  readonly data?: string;
  readonly header?: readonly string[];
  readonly query?: string;
  readonly preset?: string;
}

export interface TypedDelivery {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly query: string;
  readonly body: Buffer;
}

/** A provider's sample, as the API tells it. */
export interface Sample {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: string;
}

export const deliveryOptions = (command: Command): Command =>
  command
    .option("-d, --data <data>", "the body: text, @file, or @- for standard input")
    .option("-H, --header <header...>", "a header, as 'Name: value'")
    .option("--query <query>", "as in the address, without the question mark")
    .option("--preset <name>", "a sample of that provider's; what else is given replaces its parts");

/** @throws CommandError */
export async function readDelivery(api: Api, io: Io, options: DeliveryOptions): Promise<TypedDelivery> {
  const { data, header = [], query, preset } = options;
  const sample =
    preset === undefined
      ? undefined
      : (await api.get<{ readonly sample: Sample }>(pathOf("presets", preset))).sample;
  if (data === undefined && sample === undefined)
    throw wrongUse("There is no body: give --data, or --preset.");
  return {
    headers: {
      "content-type": "application/json",
      ...sample?.headers,
      ...Object.fromEntries(header.map(parseHeader)),
    },
    query: query ?? new URLSearchParams(sample?.query).toString(),
    body: data === undefined ? Buffer.from(sample?.body ?? "") : await readData(io, data),
  };
}

/** Text, `@file`, or `@-`. @throws CommandError */
export async function readData(io: Io, data: string): Promise<Buffer> {
  if (!data.startsWith("@")) return Buffer.from(data);
  if (data === "@-") return readBytes(io.stdin);
  return readFile(data.slice(1)).catch((error: NodeJS.ErrnoException) => {
    throw wrongUse(`${data.slice(1)} cannot be read (${error.code}).`);
  });
}

export function parseHeader(text: string): readonly [string, string] {
  const { name, value } = /^(?<name>[A-Za-z0-9!#$%&'*+.^_`|~-]+):\s*(?<value>.*)$/s.exec(text)?.groups ?? {};
  if (name === undefined || value === undefined)
    throw wrongUse(`${text} is not a header such as 'Name: value'.`);
  return [name.toLowerCase(), value.trim()];
}
