import { z } from "zod";
import { fillPlaceholders, fillUrl, type PlaceholderValues } from "../../../lib/fill-placeholders.ts";
import { suggestNearest } from "../../../lib/nearest.ts";
import { type Params, paramsField, parseParams } from "../../../verify/preset-params.ts";
import type { PresetStream } from "../../../verify/preset-streams.ts";
import { getPresets, type Preset } from "../../../verify/presets.ts";

type JsonObject = Readonly<Record<string, unknown>>;

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
  params: paramsField
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
  const params = parseParams(stream.params, config.params);
  if (!params.success) {
    for (const issue of params.error.issues)
      context.addIssue({ ...issue, path: ["params", ...issue.path] } as Parameters<
        typeof context.addIssue
      >[0]);
    return z.NEVER;
  }
  const filled = fillParams(stream.config, params.data);
  const defaults = config.reconciles === undefined ? filled : { ...Object(filled), ...stream.reconciles };
  return mergeSettings(defaults, {
    ...config,
    ...(config.params === undefined ? {} : { params: config.params }),
  });
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

/** Fills in parameters. Other placeholders, such as `{{cursor}}`, are filled for each request. */
function fillParams(config: JsonObject, params: Params): JsonObject {
  const values: PlaceholderValues = {
    has: (name) => name.startsWith(PARAM_PREFIX),
    get: (name) => params[name.slice(PARAM_PREFIX.length)],
  };
  const { request, ...others } = config;
  const filled = fillPlaceholders(others, values) as JsonObject;
  if (!isObject(request)) return filled;
  const { url, ...rest } = request;
  return {
    ...filled,
    request: {
      ...(typeof url === "string" && { url: fillUrl(url, values) }),
      ...(fillPlaceholders(rest, values) as object),
    },
  };
}

const PARAM_PREFIX = "params.";

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
