import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { describe, expect, it } from "vitest";

const SRC = join(import.meta.dirname, "..", "src");

/**
 * Layers and their modules, from the top. A file imports from lower layers or its own module, and modules of one layer never import each
 * other. `*` stands for any single folder. `src/docs/architecture.md` contains the same table.
 */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  process: ["main.ts"],
  commands: ["cli"],
  "supervisor of several gateway processes": ["supervisor"],
  "composition root": ["gateway.ts"],
  "parts of the composition root": ["gateway"],
  "HTTP application and console": ["app.ts", "console"],
  "list of resources": ["resources/resources.ts"],
  resources: ["resources/*/*"],
  "groups of resources": ["resources/*"],
  "accounts and spaces, which other resources show": ["resources/iam"],
  "code of all resources": ["resources/kit"],
  "list of channel kinds": ["channels/kinds.ts"],
  "plug-ins: channel kinds, handler calls, registrations, periodic jobs, MCP server": [
    "channels/*",
    "handlers",
    "registrations",
    "maintenance",
    "mcp",
  ],
  "code of kinds that fetch events": ["channels/pull"],
  "contract of channel kinds": ["channels"],
  "path of a delivery": ["ingest"],
  "HTTP, readers": ["http", "consumer"],
  "infrastructure, pure functions, configuration": [
    "data",
    "bus",
    "net",
    "tracing",
    "normalize",
    "verify",
    "config",
  ],
  "general-purpose code": ["lib"],
  "limits per owner": ["limits"],
  vocabulary: ["event", "log.ts", "metrics.ts"],
  "storage of metric values": ["metrics"],
};
const MODULES = Object.values(LAYERS).flat();

/** The only modules that a consumer's process loads. */
const CONSUMER_MODULES = ["consumer", "event", "lib"];

/** Functions that the console and the command line share. They import no other code, so that the console bundles none. */
const SHARED_WITH_CONSOLE = ["channels/compose-channel.ts"];

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

/**
 * Resources of a single file: the files directly in an area's folder that the list of resources imports. The area's resources share the other
 * files there.
 */
const SINGLE_FILE_RESOURCES: ReadonlySet<string> = new Set(
  imports
    .filter(
      ({ from, to }) => from === "resources/resources.ts" && /^resources\/(?!kit\/)[^/]+\/[^/]+$/.test(to),
    )
    .map(({ to }) => to),
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
  "@opentelemetry/": ["tracing"],
  "@remix-run/": ["lib"],
  pino: ["log.ts"],
  "prom-client": ["metrics.ts", "metrics"],
  preact: ["console"],
  hono: ["app.ts", "http", "channels", "mcp", "resources"],
  "@modelcontextprotocol/": ["mcp"],
  "@hono/": ["app.ts", "gateway", "http", "channels", "resources"],
};
/** Libraries that most gateways never need. They take memory as soon as they are loaded. */
const LOADED_ON_FIRST_USE = ["cron-parser", "fast-xml-parser", "oauth4webapi"];
/** Pure modules. They import no other modules of Node than those below, and use neither time nor randomness. */
const PURE = ["event", "normalize", "verify"];
const PURE_MODULES = ["node:buffer", "node:crypto", "node:util", "node:zlib"];
const IMPURE =
  /Date\.now|new Date\(\)|performance\.now|Math\.random|random(?:Bytes|UUID)|setTimeout|process\.|fetch\(/;

/**
 * Code that may call `JSON.parse` and `Response.json()`. Everything else uses `parseJson`, because a bug of V8 lets one text change the names in
 * later ones. The command line and the console serve one user, and the OpenAPI document consists of Inlet's own names.
 */
const PLAIN_JSON = [
  /^cli\//,
  /^console\//,
  /^event\/parse-json\.ts$/,
  /^event\/exact-json\.ts$/,
  /^resources\/kit\/openapi\//,
  /^mcp\/server\.ts$/,
];

function packagesOf(file: string): readonly string[] {
  const text = readFileSync(join(SRC, file), "utf8");
  return [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)"([^."][^"]*)"/g)].map((match) => match[1] ?? "");
}

function findModule(file: string): string {
  const parts = file.split("/");
  const [top = "", second = ""] = parts;
  if (MODULES.includes(file)) return file;
  if (top === "channels" && parts.length > 2) return `${top}/${second}`;
  if (SINGLE_FILE_RESOURCES.has(file)) return file.replace(/\.ts$/, "");
  if (top === "resources" && second !== "kit") return dirname(file);
  if (top === "resources") return "resources/kit";
  return top;
}

/** Returns the entry of `LAYERS` that contains the file, with `*` for any folder. */
function findListedModule(file: string): string | undefined {
  const module = findModule(file);
  const pattern = module.endsWith(".ts") ? module : module.replaceAll(/\/[^/]+/g, "/*");
  return [module, pattern].find((name) => MODULES.includes(name));
}

/** Returns the position of the file's layer. Higher layers have lower positions. */
function findLayer(file: string): number {
  const module = findListedModule(file);
  return Object.values(LAYERS).findIndex((modules) => modules.some((name) => name === module));
}

const readPage = (): string => readFileSync(join(SRC, "docs/architecture.md"), "utf8");

/** Returns the rows of the page's table in the form of `LAYERS`. */
function readLayersTable(): readonly (readonly [layer: string, modules: readonly string[]])[] {
  const [, table = ""] = readPage().split("| Layer, from the top | Modules |\n");
  return [...(table.split("\n\n")[0] ?? "").matchAll(/^\| (.+) \| (`.+) \|$/gm)].map(
    ([, layer = "", cell = ""]) => [
      layer,
      [...cell.matchAll(/`src\/(.+?)\/?`/g)].map(([, module = ""]) => module),
    ],
  );
}

const findViolations = (imported: readonly Import[]): readonly Import[] =>
  imported.filter(
    ({ from, to }) =>
      files.includes(to) && findModule(from) !== findModule(to) && findLayer(to) <= findLayer(from),
  );

describe("the layers of src", () => {
  it("contain every source file, and list no module that does not exist", () => {
    expect(files.filter((file) => findListedModule(file) === undefined)).toEqual([]);
    const used = new Set(files.map(findListedModule));
    expect(MODULES.filter((module) => !used.has(module))).toEqual([]);
  });

  it("are the layers that the documentation lists, in the same order", () => {
    expect(readLayersTable()).toEqual(Object.entries(LAYERS));
  });

  it("import only from lower layers or their own module", () => {
    expect(imports.length).toBeGreaterThan(files.length / 2);
    expect(findViolations(imports)).toEqual([]);
  });

  it.each([
    ["resources/store/categories.ts", "resources/store/reviews.ts"],
    ["resources/store/categories.ts", "resources/iam/groups.ts"],
    ["resources/store/categories.ts", "resources/store/orders/schema.ts"],
    ["resources/store/orders/routes.ts", "resources/store/categories.ts"],
    ["resources/apps/apps/routes.ts", "resources/apps/channels/queries.ts"],
    ["resources/store/store-scope.ts", "resources/store/categories.ts"],
    ["resources/store/store-scope.ts", "resources/store/orders/schema.ts"],
  ])("reject an import from %s to the resource %s", (from, to) => {
    expect(files).toEqual(expect.arrayContaining([from, to]));
    expect(findViolations([{ from, to }])).toEqual([{ from, to }]);
  });

  it("accept an import from a resource to its own folder or to the shared code of its area", () => {
    const imported = [
      { from: "resources/store/orders/routes.ts", to: "resources/store/orders/schema.ts" },
      { from: "resources/store/orders/routes.ts", to: "resources/store/store-scope.ts" },
      { from: "resources/store/categories.ts", to: "resources/store/store-scope.ts" },
    ];
    expect(findViolations(imported)).toEqual([]);
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

  it("let the console import only types from server code, except functions without imports", () => {
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
    const fromServer = shared.filter((to) => !to.startsWith("console/"));
    expect(new Set(fromServer)).toEqual(new Set(SHARED_WITH_CONSOLE));
    expect(imports.filter(({ from }) => SHARED_WITH_CONSOLE.includes(from))).toEqual([]);
    const importsOfConsole = imports.filter(
      ({ from, to }) => findModule(to) === "console" && findModule(from) !== "console",
    );
    expect(importsOfConsole).toEqual([]);
  });
});

describe("the fields of a resource", () => {
  it("are in its single file, or in the `schema.ts` of its folder or area", () => {
    const declaring = files.filter(
      (file) =>
        file.startsWith("resources/") &&
        !file.startsWith("resources/kit/") &&
        /\bshape\(|\bTableOf</.test(readFileSync(join(SRC, file), "utf8")),
    );
    expect(declaring.length).toBeGreaterThan(15);
    const misplaced = declaring.filter(
      (file) => !SINGLE_FILE_RESOURCES.has(file) && !file.endsWith("/schema.ts"),
    );
    expect(misplaced).toEqual([]);
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

  it("import libraries that are loaded on first use only as types", () => {
    const names = LOADED_ON_FIRST_USE.join("|");
    const own = files.filter((file) => !/^(?:consumer|console)\//.test(file));
    const importing = (pattern: RegExp) =>
      own.filter((file) => pattern.test(readFileSync(join(SRC, file), "utf8")));
    expect(importing(new RegExp(`^import (?!type )[^;]*from "(?:${names})"`, "m"))).toEqual([]);
    for (const name of LOADED_ON_FIRST_USE)
      expect(importing(new RegExp(`^import type [^;]*from "${name}"`, "m"))).not.toEqual([]);
  });

  it("load the API and the MCP server only if the gateway serves them", () => {
    const parts = ["resources/resources.ts", "mcp/mcp.ts"];
    const importers = imports.filter(({ to }) => parts.includes(to)).map(({ from }) => from);
    expect([...new Set(importers)]).toEqual(["app.ts"]);
    const code = readFileSync(join(SRC, "app.ts"), "utf8").replace(/^import type .*$/gm, "");
    for (const part of parts) {
      expect(code).not.toContain(`from "./${part}"`);
      expect(code).toContain(`import("./${part}")`);
    }
  });

  it("load OpenTelemetry only when traces are exported", () => {
    const importers = files.filter((file) =>
      packagesOf(file).some((name) => name.startsWith("@opentelemetry/")),
    );
    expect(importers).toEqual(["tracing/otlp-exporter.ts"]);
    const loads = imports.filter(({ to }) => to === "tracing/otlp-exporter.ts").map(({ from }) => from);
    expect(loads).toEqual(["tracing/tracing.ts"]);
    expect(readFileSync(join(SRC, "tracing/tracing.ts"), "utf8")).toContain(
      'await import("./otlp-exporter.ts")',
    );
  });

  it("parse JSON with `parseJson`, unless they are on the list of code with other parsers", () => {
    const plain = files.filter((file) => {
      const code = readFileSync(join(SRC, file), "utf8").replace(/^\s*(?:\/?\*|\/\/).*$/gm, "");
      return /\bJSON\.parse\b|\bparse\b[^;]*\}[^;]*= JSON\b|\.json\(\)/.test(
        code.replaceAll(/`[^`\n]*`/g, ""),
      );
    });
    expect(plain.filter((file) => !PLAIN_JSON.some((each) => each.test(file)))).toEqual([]);
    expect(PLAIN_JSON.filter((each) => !plain.some((file) => each.test(file)))).toEqual([]);
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
  it("have at most 300 lines, except those that the documentation lists with a reason", () => {
    const sources = globSync("**/*.{ts,tsx,lua,sql,css,js}", {
      cwd: SRC,
      exclude: ["console/{dist,generated}/**"],
    });
    const long = sources.filter((file) => readFileSync(join(SRC, file), "utf8").split("\n").length > 301);
    const [, section = ""] = readPage().split("### Files over 300 lines");
    expect(sources).toEqual(expect.arrayContaining(files));
    expect(long.filter((file) => !section.includes(`\`src/${file}\``))).toEqual([]);
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
