import type { ChannelIdentity } from "../event/channel.ts";
import { type ConflictRule, getConflictRule } from "../event/dedupe.ts";
import { encodeType, topicPrefixOf } from "../event/topic.ts";
import type { Finding } from "../lib/errors.ts";
import { ok, type Result } from "../lib/result.ts";
import { type CompiledDefinitions, compileDefinitions, type DefinitionSource } from "./compile.ts";
import type { PathCache } from "./paths/jsonpath.ts";

/** The stored event definitions of a channel. */
export interface RuleSource extends DefinitionSource {
  readonly channel: ChannelIdentity;
  /** Stored topic names by event type. A type without an entry uses the name that a new topic would get. */
  readonly topics?: ReadonlyMap<string, string>;
  readonly schemaNames?: SchemaNames | undefined;
}

/** URLs of the stored schemas of a channel. Definitions that are not stored have none. */
export interface SchemaNames {
  /** URL to which `/<type>/<version>` is appended. */
  readonly baseUrl: string;
  /** Versions by event type. A type without an entry has no stored schema. */
  readonly versions: ReadonlyMap<string, number>;
}

/** Compiled event definitions with the data of one channel. */
export interface RuleSet extends CompiledDefinitions {
  readonly channel: ChannelIdentity;
  /** Stored topic names by event type. Contains only names that differ from those of new topics. */
  readonly topics: ReadonlyMap<string, string>;
  /** Topic name prefix of the channel. The encoded event type is appended to it. */
  readonly topicPrefix: string;
  readonly schemaNames: SchemaNames | undefined;
  /** CloudEvents `source` of events whose sender does not set one. */
  readonly source: string;
  readonly conflictRule: ConflictRule;
}

/** Compiles the event definitions of a channel. The error lists every invalid path. */
export function compileRules(
  { channel, topics, schemaNames, ...source }: RuleSource,
  pathCache?: PathCache,
): Result<RuleSet, readonly Finding[]> {
  const compiled = compileDefinitions(source, pathCache);
  return compiled.ok ? ok(createRuleSet(compiled.value, channel, topics, schemaNames)) : compiled;
}

/**
 * Combines compiled event definitions with the data of one channel.
 *
 * @param topics stored topic names of the channel, by event type
 */
export function createRuleSet(
  compiled: CompiledDefinitions,
  channel: ChannelIdentity,
  topics: ReadonlyMap<string, string> = NO_TOPICS,
  schemaNames?: SchemaNames,
): RuleSet {
  const topicPrefix = topicPrefixOf({ ...channel, channelUid: channel.uid });
  const renamed = [...topics].filter(([type, topic]) => topic !== topicPrefix + encodeType(type));
  return {
    ...compiled,
    channel,
    topicPrefix,
    schemaNames: schemaNames?.versions.size === 0 ? undefined : schemaNames,
    source: formatSource(channel),
    conflictRule: getConflictRule(compiled.config.dedupe),
    topics: renamed.length === 0 ? NO_TOPICS : new Map(renamed),
  };
}

/**
 * Returns the CloudEvents `source` of a channel. Uses `join`, because V8 would have to flatten the result of a template literal for
 * each delivery.
 */
export const formatSource = ({ appId, uid }: Pick<ChannelIdentity, "appId" | "uid">): string =>
  ["", "apps", appId, "channels", uid].join("/");

/** Shared empty map, because nearly all channels have only topics with current names. */
const NO_TOPICS: ReadonlyMap<string, string> = new Map();
