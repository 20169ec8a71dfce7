import type { TraceContext } from "../lib/traceparent.ts";

/** Values of `OTEL_TRACES_SAMPLER`. */
export type SamplerName = `parentbased_${RootSamplerName}` | RootSamplerName;
type RootSamplerName = "always_on" | "always_off" | "traceidratio";

export interface Sampler {
  /** Returns whether to sample a new trace. */
  readonly samplesRoot: () => boolean;
  /** Returns whether to sample a trace that a trusted sender has started. */
  readonly samplesChild: (parent: TraceContext) => boolean;
}

/**
 * Creates the sampler with this name. Only the `parentbased_` samplers follow the decision of a trusted sender.
 *
 * @param random returns numbers from 0 to 1, excluding 1
 */
export function createSampler(name: SamplerName, ratio: number, random: () => number): Sampler {
  const share = getShare(name.replace("parentbased_", ""), ratio);
  const samplesRoot = (): boolean => random() < share;
  return {
    samplesRoot,
    samplesChild: name.startsWith("parentbased_") ? ({ isSampled }) => isSampled : samplesRoot,
  };
}

function getShare(name: string, ratio: number): number {
  if (name === "always_on") return 1;
  return name === "always_off" ? 0 : ratio;
}
