import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { describe, expect, it } from "vitest";

const SRC = join(import.meta.dirname, "..", "src");

/** Rooms by floor: a file imports from lower floors or from its own room; rooms on one floor never import each other. */
const FLOORS: readonly (readonly string[])[] = [
  ["lib", "config.ts", "settings.ts", "log.ts", "metrics.ts"],
  ["event"],
  ["normalize", "verify"],
  ["data", "bus", "net"],
  ["http"],
  ["ingest", "channels", "resources/kit"],
  ["channels/push", "channels/pull", "resources/iam"],
  ["resources/*"],
  ["channels/*", "resources/*/*", "resources/forms", "delivery", "console"],
  ["channels/kinds.ts", "resources/resources.ts"],
  ["app.ts", "gateway"],
  ["gateway.ts"],
  ["main.ts"],
];

/** The reader's library is a package of its own: it takes along the vocabulary and ideas that know no Inlet, nothing else. */
const OWN_WORLD = ["consumer"];
const TAKEN_ALONG = ["event", "lib"];

interface Import {
  readonly from: string;
  readonly to: string;
}

const files = globSync("**/*.ts", { cwd: SRC }).map((file) => file.split(sep).join("/"));

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
  kysely: ["data", "resources", "gateway"],
  pg: ["data"],
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
    expect(files.filter((file) => floorOf(file) < 0 && !OWN_WORLD.includes(roomOf(file)))).toEqual([]);
  });

  it("import only downwards or within a room", () => {
    expect(imports.length).toBeGreaterThan(files.length / 2);
    const climbing = imports.filter(
      ({ from, to }) =>
        roomOf(from) !== roomOf(to) && !OWN_WORLD.includes(roomOf(from)) && floorOf(to) >= floorOf(from),
    );
    expect(climbing.filter(({ from, to }) => !(floorOf(from) === 0 && floorOf(to) === 0))).toEqual([]);
  });

  it("pack nothing of the gateway into the reader's library", () => {
    const taken = imports.filter(
      ({ from, to }) => OWN_WORLD.includes(roomOf(from)) && roomOf(to) !== roomOf(from),
    );
    expect(taken).not.toHaveLength(0);
    expect(taken.filter(({ to }) => !TAKEN_ALONG.includes(roomOf(to)))).toEqual([]);
  });

  it("import only files of src, or package.json", () => {
    const strangers = imports
      .map(({ to }) => to)
      .filter((to) => !files.includes(to) && to !== "../package.json");
    expect(strangers).toEqual([]);
  });
});

describe("the rooms of src", () => {
  it("import each driver of PostgreSQL, Redis and HTTP only where it is allowed", () => {
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

describe("the files of src", () => {
  it("have at most 300 lines", () => {
    const long = files.filter((file) => readFileSync(join(SRC, file), "utf8").split("\n").length > 301);
    expect(long).toEqual([]);
  });
});
