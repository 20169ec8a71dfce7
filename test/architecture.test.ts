import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { describe, expect, it } from "vitest";

const SRC = join(import.meta.dirname, "..", "src");

/**
 * Rooms from the lowest floor to the highest: a file imports from lower floors or from its own room, and rooms of one floor never
 * import each other. `*` stands for any one folder.
 */
const FLOORS: readonly (readonly string[])[] = [
  // How figures are kept.
  ["metrics"],
  // Vocabulary, and what is written about it.
  ["event", "log.ts", "metrics.ts"],
  // Each file one idea that knows no Inlet.
  ["lib"],
  // PostgreSQL, Redis, outbound HTTP; two that only compute; how the program is told what to do.
  ["data", "bus", "net", "normalize", "verify", "settings.ts", "options.ts"],
  // Engines.
  ["ingest", "http", "consumer", "config.ts"],
  // Plug-ins: their contract, what several of them stand on, they themselves, their list.
  ["channels"],
  ["channels/push", "channels/pull"],
  ["channels/*", "delivery"],
  ["channels/kinds.ts"],
  // The management API: what all stand on, what a group shares (accounts and spaces first: others show them), each resource, their list.
  ["resources/kit"],
  ["resources/iam"],
  ["resources/*"],
  ["resources/*/*", "resources/forms"],
  ["resources/resources.ts"],
  // What answers HTTP.
  ["app.ts", "console"],
  // The only place that builds the graph.
  ["gateway"],
  ["gateway.ts"],
  // Process, commands, exit codes.
  ["cli"],
  ["main.ts"],
];

/** A reader's process loads these and nothing else of ours. */
const LOADED_BY_READERS = ["consumer", "event", "lib"];

/** What is no source: styles and pictures of the console. */
const MADE = /^console\/.*\.(?:css|svg)$/;

interface Import {
  readonly from: string;
  readonly to: string;
}

const files = globSync("**/*.{ts,tsx}", { cwd: SRC, exclude: ["console/{dist,generated}/**"] }).map((file) =>
  file.split(sep).join("/"),
);

const imports: readonly Import[] = files.flatMap((from) =>
  [...readFileSync(join(SRC, from), "utf8").matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)"(\.[^"]+)"/g)].map(
    (match) => ({
      from,
      to: normalize(join(dirname(from), match[1] ?? ""))
        .split(sep)
        .join("/"),
    }),
  ),
);

/** The only rooms that may import a package, or one that begins so: behind them it can be exchanged. */
const DOORS: Readonly<Record<string, readonly string[]>> = {
  ioredis: ["bus", "consumer"],
  bullmq: ["bus"],
  cloudevents: ["event", "consumer"],
  kysely: ["data", "resources", "cli"],
  pg: ["data"],
  "pg-copy-streams": ["data"],
  "tar-stream": ["lib"],
  undici: ["net"],
  oauth4webapi: ["net", "console"],
  ajv: ["lib"],
  re2js: ["lib"],
  "json-p3": ["normalize"],
  "jsonpath-plus": ["normalize"],
  "fast-xml-parser": ["normalize"],
  pino: ["log.ts"],
  "prom-client": ["metrics.ts", "metrics"],
  preact: ["console"],
  hono: ["app.ts", "http", "channels", "resources"],
  "@hono/": ["app.ts", "gateway", "http", "channels", "resources"],
};
/** Of Node, the rooms that compute and touch nothing import no more than this; nor do they ask for time or chance. */
const PURE = ["event", "normalize", "verify"];
const PURE_MODULES = ["node:buffer", "node:crypto", "node:util", "node:zlib"];
const IMPURE =
  /Date\.now|new Date\(\)|performance\.now|Math\.random|random(?:Bytes|UUID)|setTimeout|process\.|fetch\(/;

function packagesOf(file: string): readonly string[] {
  const text = readFileSync(join(SRC, file), "utf8");
  return [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)"([^."][^"]*)"/g)].map((match) => match[1] ?? "");
}

function roomOf(file: string): string {
  const parts = file.split("/");
  const [top = "", second = ""] = parts;
  if (FLOORS.flat().includes(file)) return file;
  if (top === "channels" && parts.length > 2) return `${top}/${second}`;
  if (top === "resources" && second !== "kit") return dirname(file);
  if (top === "resources") return "resources/kit";
  return top;
}

function floorOf(file: string): number {
  const room = roomOf(file);
  const named = FLOORS.findIndex((rooms) => rooms.includes(room));
  const pattern = room.endsWith(".ts") ? room : room.replaceAll(/\/[^/]+/g, "/*");
  return named < 0 ? FLOORS.findIndex((rooms) => rooms.includes(pattern)) : named;
}

describe("the floors of src", () => {
  it("hold every file", () => {
    expect(files.filter((file) => floorOf(file) < 0)).toEqual([]);
  });

  it("import only downwards or within a room", () => {
    expect(imports.length).toBeGreaterThan(files.length / 2);
    const climbing = imports.filter(
      ({ from, to }) => roomOf(from) !== roomOf(to) && floorOf(to) >= floorOf(from),
    );
    expect(climbing).toEqual([]);
  });

  it("give a reader's process nothing of the gateway", () => {
    const loaded = imports.filter(({ from }) => roomOf(from) === "consumer");
    expect(loaded.filter(({ to }) => !LOADED_BY_READERS.includes(roomOf(to)))).toEqual([]);
  });

  it("import only files of src, or package.json", () => {
    const strangers = imports
      .map(({ to }) => to)
      .filter((to) => !files.includes(to) && to !== "../package.json" && !MADE.test(to));
    expect(strangers).toEqual([]);
  });

  it("leave the console to itself: it calls the public API, and shares no more than types with the server", () => {
    const own = files.filter((file) => roomOf(file) === "console");
    expect(own.length).toBeGreaterThan(0);
    const shared = own.flatMap((file) =>
      [
        ...readFileSync(join(SRC, file), "utf8").matchAll(
          /^(?:import|export)\s(?!type\s)[^;]*?from\s+"(\.[^"]+)"/gm,
        ),
      ].map(([, to = ""]) =>
        normalize(join(dirname(file), to))
          .split(sep)
          .join("/"),
      ),
    );
    expect(shared.filter((to) => !to.startsWith("console/"))).toEqual([]);
    const asked = imports.filter(({ from, to }) => roomOf(to) === "console" && roomOf(from) !== "console");
    expect(asked).toEqual([]);
  });
});

describe("the rooms of src", () => {
  it("import each library that is to be exchanged in one place only there", () => {
    const passed = new Set<string>();
    const strangers = files.flatMap((file) =>
      packagesOf(file).flatMap((name) => {
        const door = Object.keys(DOORS).find(
          (each) => name === each || name.startsWith(each.replace(/\w$/, "$&/")),
        );
        if (door === undefined) return [];
        passed.add(door);
        const [room = ""] = file.split("/");
        return DOORS[door]?.includes(room) ? [] : [`${file} imports ${name}`];
      }),
    );
    expect(strangers).toEqual([]);
    expect([...passed].sort()).toEqual(Object.keys(DOORS).sort());
  });

  it("use neither I/O nor time nor randomness where they are pure", () => {
    // Presets are data in a folder of its own, read once at start.
    const pure = files.filter((file) => PURE.includes(roomOf(file)) && file !== "verify/presets.ts");
    expect(pure.length).toBeGreaterThan(PURE.length);
    const reaching = pure.filter(
      (file) =>
        packagesOf(file).some((name) => name.startsWith("node:") && !PURE_MODULES.includes(name)) ||
        IMPURE.test(readFileSync(join(SRC, file), "utf8").replace(/^\s*(?:\/?\*|\/\/).*$/gm, "")),
    );
    expect(reaching).toEqual([]);
  });
});

describe("the migrations", () => {
  it("have each a number of its own", () => {
    const names = globSync("data/migrations/*.sql", { cwd: SRC }).sort();
    const numbers = names.map((name) => Number(/(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1]));
    expect(numbers.every((number) => number > 0)).toBe(true);
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});

describe("the files of src", () => {
  it("hold one idea each: none has more than 400 lines", () => {
    const long = files.filter((file) => readFileSync(join(SRC, file), "utf8").split("\n").length > 401);
    expect(long).toEqual([]);
  });
});

describe("what tests share", () => {
  /** Vitest runs it anew before each file of tests. */
  const SET_UP = "support/leftovers.ts";

  it("runs nothing behind or before tests by itself: a worker loads it once, so that would hold for the first file alone", () => {
    const shared = globSync("**/*.{ts,tsx}", {
      cwd: import.meta.dirname,
      exclude: ["**/*.test.{ts,tsx}", SET_UP],
    });
    const hooked = shared.filter((file) =>
      /^(?:before|after)(?:Each|All)\(/m.test(readFileSync(join(import.meta.dirname, file), "utf8")),
    );
    expect(shared.length).toBeGreaterThan(100);
    expect(hooked).toEqual([]);
  });
});
