import { z } from "zod";
import { suggestNearest } from "../../../lib/nearest.ts";
import type { PresetStream } from "../../../verify/preset-streams.ts";
import { getPresets, type Preset } from "../../../verify/presets.ts";

type JsonObject = Readonly<Record<string, unknown>>;
type Params = Readonly<Record<string, unknown>>;

export const presetFields = {
  preset: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe(
      "Name of a provider preset with `streams`, which supplies the request, the discriminator and other settings. The channel's own settings take precedence. Inlet stores only your own settings, so improvements to a preset in later versions apply to the channel.",
    ),
  stream: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe("Name of a stream of the preset, such as `issues`. Required with `preset`."),
  params: z
    .record(z.string().max(64), z.union([z.string().max(1_024), z.number(), z.boolean()]))
    .optional()
    .describe("Parameters of the stream, such as the name of a repository. The preset lists them."),
} as const;

/** Returns the stream that the config of a channel names, or `undefined` if it names none or an unknown one. */
export function findStream({ preset, stream }: JsonObject): PresetStream | undefined {
  const found = typeof preset === "string" ? getPresets().get(preset) : undefined;
  return found?.streams.find(({ name }) => name === stream);
}

/**
 * Adds the settings of the preset's stream to a channel's config. Settings of the channel take precedence, member by member. A config
 * without `preset` stays as it is. Expanding a config twice has the same result as expanding it once.
 */
export function expandPreset(config: unknown, context: z.RefinementCtx): unknown {
  if (!isObject(config) || config.preset === undefined) return config;
  const reject = (path: readonly PropertyKey[], message: string): never => {
    context.addIssue({ code: "custom", path: [...path], message });
    return z.NEVER;
  };
  const preset = typeof config.preset === "string" ? getPresets().get(config.preset) : undefined;
  if (preset === undefined) return reject(["preset"], unknownPreset(config.preset));
  const stream = findStream(config);
  if (stream === undefined) return reject(["stream"], unknownStream(config.stream, preset));
  const params = readParams(stream, config.params);
  if (!params.success) {
    for (const issue of params.error.issues)
      context.addIssue({ ...issue, path: ["params", ...issue.path] } as Parameters<
        typeof context.addIssue
      >[0]);
    return z.NEVER;
  }
  const filled = fillParams(stream.config, params.data);
  return mergeSettings(filled, {
    ...config,
    ...(config.params === undefined ? {} : { params: config.params }),
  });
}

function readParams({ params }: PresetStream, given: unknown = {}): z.ZodSafeParseResult<Params> {
  const schema = z.fromJSONSchema(params) as z.ZodType<Params>;
  return schema
    .superRefine((values, context) => {
      for (const [name, value] of Object.entries(values)) {
        const message = typeof value === "string" ? findParamError(value) : undefined;
        if (message !== undefined) context.addIssue({ code: "custom", path: [name], message });
      }
    })
    .safeParse(given);
}

/** Returns why a parameter could change more of the request than its place in it. */
function findParamError(value: string): string | undefined {
  if (value.includes("{{")) return "must not contain {{, which begins a placeholder";
  return value === "." || value === ".."
    ? "must not be . or .., which would change the path of the URL"
    : undefined;
}

const unknownPreset = (name: unknown): string => {
  const names = [...getPresets().values()]
    .filter(({ streams }) => streams.length > 0)
    .map(({ preset }) => preset);
  return `is not a known preset${typeof name === "string" ? suggestNearest(name.toLowerCase(), names) : ""}`;
};

function unknownStream(name: unknown, { title, streams }: Preset): string {
  if (streams.length === 0)
    return `is not available, because the preset of ${title} has no streams; use a webhook channel`;
  const names = streams.map((stream) => stream.name);
  const must = `must be one of ${names.join(", ")}`;
  return typeof name === "string" ? must + suggestNearest(name.toLowerCase(), names) : must;
}

/** Matches the placeholder of a parameter. Other placeholders, such as `{{cursor}}`, are filled for each request. */
const PARAM = /\{\{\s*params\.([A-Za-z][A-Za-z0-9_]*)\s*\}\}/g;

/** Fills in parameters. Leaves out members that name a parameter without a value. */
function fillParams(config: JsonObject, params: Params): JsonObject {
  const { request, ...others } = config;
  const filled = fill(others, params) as JsonObject;
  if (!isObject(request)) return filled;
  const { url, ...rest } = request;
  return {
    ...filled,
    request: {
      ...(typeof url === "string" && { url: fillUrl(url, params) }),
      ...(fill(rest, params) as object),
    },
  };
}

function fill(value: unknown, params: Params): unknown {
  if (typeof value === "string") return fillText(value, params);
  if (Array.isArray(value)) return value.map((one) => fill(one, params)).filter((one) => one !== undefined);
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, one]) => [name, fill(one, params)] as const);
  return Object.fromEntries(members.filter(([, one]) => one !== undefined));
}

function fillText(text: string, params: Params): unknown {
  const names = [...text.matchAll(PARAM)].map(([, name = ""]) => name);
  const [only] = names;
  if (names.some((name) => params[name] === undefined)) return undefined;
  // A text that is only a placeholder becomes the value, so that numbers and booleans keep their type.
  if (only !== undefined && text.replace(PARAM, "") === "")
    return names.length === 1 ? params[only] : undefined;
  return text.replace(PARAM, (_, name: string) => String(params[name]));
}

/** Scheme, host and port of a URL template. Parameters in them are patterns of the preset, so they need no encoding. */
const ORIGIN = /^(?:\{\{\s*params\.[A-Za-z0-9_]+\s*\}\}|https?:\/\/[^/?#]*)/;

/** Fills in parameters of a URL. In the path and query they are percent-encoded, so that they cannot change the rest of the URL. */
function fillUrl(url: string, params: Params): string {
  const origin = ORIGIN.exec(url)?.[0] ?? "";
  const rest = url.slice(origin.length);
  const filled = origin.replace(PARAM, (_, name: string) => String(params[name] ?? ""));
  const encoded = rest.replace(PARAM, (_, name: string) => encodeURIComponent(String(params[name] ?? "")));
  // The address of a server may end with a slash, and so may a whole address that is a parameter.
  return (rest.startsWith("/") ? filled.replace(/\/+$/, "") : filled) + encoded;
}

/** Merges settings. An object that names another variant by its `by` replaces the preset's one as a whole. */
function mergeSettings(preset: unknown, own: unknown): unknown {
  if (!isObject(preset) || !isObject(own)) return own;
  if (own.by !== undefined && own.by !== preset.by) return own;
  const merged = new Map(Object.entries(preset));
  for (const [name, value] of Object.entries(own)) merged.set(name, mergeSettings(merged.get(name), value));
  return Object.fromEntries(merged);
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
