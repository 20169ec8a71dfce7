import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { describe, expect, it } from "vitest";

const SRC = join(import.meta.dirname, "..", "src");

/**
 * Layers from the lowest to the highest. A file imports from lower layers or its own module, and modules of one layer never import
 * each other. `*` stands for any single folder.
 */
const LAYERS: readonly (readonly string[])[] = [
  // The storage of metric values.
  ["metrics"],
  // Vocabulary.
  ["event", "log.ts", "metrics.ts"],
  // General-purpose code without any knowledge of Inlet.
  ["lib"],
  // PostgreSQL, Redis and outbound HTTP, then two pure modules, then settings and command-line options.
  ["data", "bus", "net", "normalize", "verify", "settings.ts", "options.ts"],
  // Engines. The path of a delivery begins at the seam to HTTP.
  ["http", "consumer", "config.ts"],
  ["ingest"],
  // Plug-ins: their contract, code that several plug-ins share, the plug-ins themselves, and the list of them.
  ["channels"],
  ["channels/push", "channels/pull"],
  ["channels/*", "handlers", "maintenance"],
  ["channels/kinds.ts"],
  // The management API: shared code, accounts and spaces (which other resources show), each resource, and the list of resources.
  ["resources/kit"],
  ["resources/iam"],
  ["resources/*"],
  ["resources/*/*", "resources/forms"],
  ["resources/resources.ts"],
  // HTTP application and console.
  ["app.ts", "console"],
  // The composition root, which builds the object graph.
  ["gateway"],
  ["gateway.ts"],
  // Process, commands, exit codes.
  ["cli"],
  ["main.ts"],
];

/** The only modules that a consumer's process loads. */
const CONSUMER_MODULES = ["consumer", "event", "lib"];

/** Styles and pictures of the console, which are not source files. */
const ASSETS = /^console\/.*\.(?:css|svg)$/;

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

/** The only modules that may import a package, or packages with this prefix, so that the package stays replaceable. */
const LIBRARY_MODULES: Readonly<Record<string, readonly string[]>> = {
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
/** Pure modules. They import no other modules of Node than those below, and use neither time nor randomness. */
const PURE = ["event", "normalize", "verify"];
const PURE_MODULES = ["node:buffer", "node:crypto", "node:util", "node:zlib"];
const IMPURE =
  /Date\.now|new Date\(\)|performance\.now|Math\.random|random(?:Bytes|UUID)|setTimeout|process\.|fetch\(/;

function packagesOf(file: string): readonly string[] {
  const text = readFileSync(join(SRC, file), "utf8");
  return [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)"([^."][^"]*)"/g)].map((match) => match[1] ?? "");
}

function findModule(file: string): string {
  const parts = file.split("/");
  const [top = "", second = ""] = parts;
  if (LAYERS.flat().includes(file)) return file;
  if (top === "channels" && parts.length > 2) return `${top}/${second}`;
  if (top === "resources" && second !== "kit") return dirname(file);
  if (top === "resources") return "resources/kit";
  return top;
}

function findLayer(file: string): number {
  const module = findModule(file);
  const named = LAYERS.findIndex((modules) => modules.includes(module));
  const pattern = module.endsWith(".ts") ? module : module.replaceAll(/\/[^/]+/g, "/*");
  return named < 0 ? LAYERS.findIndex((modules) => modules.includes(pattern)) : named;
}

describe("the layers of src", () => {
  it("contain every source file, so that no file is without a layer", () => {
    expect(files.filter((file) => findLayer(file) < 0)).toEqual([]);
  });

  it("import only from lower layers or their own module", () => {
    expect(imports.length).toBeGreaterThan(files.length / 2);
    const violations = imports.filter(
      ({ from, to }) => findModule(from) !== findModule(to) && findLayer(to) >= findLayer(from),
    );
    expect(violations).toEqual([]);
  });

  it("keep gateway code out of the consumer package", () => {
    const loaded = imports.filter(({ from }) => findModule(from) === "consumer");
    expect(loaded.filter(({ to }) => !CONSUMER_MODULES.includes(findModule(to)))).toEqual([]);
  });

  it("import no repository file outside src except package.json", () => {
    const violations = imports
      .map(({ to }) => to)
      .filter((to) => !files.includes(to) && to !== "../package.json" && !ASSETS.test(to));
    expect(violations).toEqual([]);
  });

  it("let the console import only types from server code", () => {
    const own = files.filter((file) => findModule(file) === "console");
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
    const importsOfConsole = imports.filter(
      ({ from, to }) => findModule(to) === "console" && findModule(from) !== "console",
    );
    expect(importsOfConsole).toEqual([]);
  });
});

describe("the modules of src", () => {
  it("import a replaceable library only if they are on the list of modules for that library", () => {
    const used = new Set<string>();
    const violations = files.flatMap((file) =>
      packagesOf(file).flatMap((name) => {
        const library = Object.keys(LIBRARY_MODULES).find(
          (each) => name === each || name.startsWith(each.replace(/\w$/, "$&/")),
        );
        if (library === undefined) return [];
        used.add(library);
        const [module = ""] = file.split("/");
        return LIBRARY_MODULES[library]?.includes(module) ? [] : [`${file} imports ${name}`];
      }),
    );
    expect(violations).toEqual([]);
    expect([...used].sort()).toEqual(Object.keys(LIBRARY_MODULES).sort());
  });

  it("use no I/O, clock or randomness if they are declared pure", () => {
    // `verify/presets.ts` is exempt: it reads its data files once at startup.
    const pure = files.filter((file) => PURE.includes(findModule(file)) && file !== "verify/presets.ts");
    expect(pure.length).toBeGreaterThan(PURE.length);
    const impure = pure.filter(
      (file) =>
        packagesOf(file).some((name) => name.startsWith("node:") && !PURE_MODULES.includes(name)) ||
        IMPURE.test(readFileSync(join(SRC, file), "utf8").replace(/^\s*(?:\/?\*|\/\/).*$/gm, "")),
    );
    expect(impure).toEqual([]);
  });
});

describe("the migrations", () => {
  it("have unique numbers", () => {
    const names = globSync("data/migrations/*.sql", { cwd: SRC }).sort();
    const numbers = names.map((name) => Number(/(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1]));
    expect(numbers.every((number) => number > 0)).toBe(true);
    expect(new Set(numbers).size).toBe(numbers.length);
  });
});

describe("the files of src", () => {
  it("have at most 400 lines", () => {
    const long = files.filter((file) => readFileSync(join(SRC, file), "utf8").split("\n").length > 401);
    expect(long).toEqual([]);
  });
});

describe("code shared by tests", () => {
  /** Vitest runs this file before each test file. */
  const SETUP_FILE = "support/leftovers.ts";

  it("registers no beforeEach or afterAll hooks at module level, where they would run only for a worker's first test file", () => {
    const shared = globSync("**/*.{ts,tsx}", {
      cwd: import.meta.dirname,
      exclude: ["**/*.test.{ts,tsx}", SETUP_FILE],
    });
    const hooked = shared.filter((file) =>
      /^(?:before|after)(?:Each|All)\(/m.test(readFileSync(join(import.meta.dirname, file), "utf8")),
    );
    expect(shared.length).toBeGreaterThan(100);
    expect(hooked).toEqual([]);
  });
});
