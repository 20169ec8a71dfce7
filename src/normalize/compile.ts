import type { ChannelIdentity, CommonSettings } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { FormReading } from "../event/form-reading.ts";
import { encodeType, topicPrefixOf } from "../event/topic.ts";
import type { Finding } from "../lib/errors.ts";
import { err, ok, type Result } from "../lib/result.ts";
import {
  createPathCompiler,
  type PathCache,
  type PathCompilerOptions,
  type RootedPath,
} from "./paths/jsonpath.ts";
import {
  BODY_ROOT,
  ITEM_ROOT,
  type ItemOptions,
  type KindProfile,
  type NameItem,
  type RootSource,
} from "./profile.ts";

/** A channel's definitions as stored. Their shapes are valid and their types are distinct. */
export interface RuleSource {
  readonly channel: ChannelIdentity;
  readonly profile: KindProfile;
  readonly config: CommonSettings;
  readonly definitions: readonly Definition[];
  /** Stored topic names by type. A type without a stored name gets the name that a new topic would get. */
  readonly topics?: ReadonlyMap<string, string>;
  readonly forms?: FormReading;
}

/** Settings and definitions without the identity of a channel. */
export type DefinitionSource = Omit<RuleSource, "channel" | "topics">;

export type RulePath = RootedPath<RootSource>;

/** A compiled definition. */
export interface Rule {
  /** Position among the channel's definitions, from 0. Events are published in this order. */
  readonly index: number;
  readonly type: string;
  /** The encoded type at the end of the topic's name, unless the topic has an older stored name. */
  readonly topicSuffix: string;
  /** The definition's `idPath`, or the default for all items of the channel. */
  readonly idPath: RulePath | undefined;
  /** `undefined` if the payload is the whole item. */
  readonly payloadPath: RulePath | undefined;
  readonly schema: Definition["schema"];
}

/** Compiled definitions without data of a specific channel, so that channels with equal definitions can share them. */
export interface CompiledDefinitions extends Required<DefinitionSource> {
  readonly itemsPath: RulePath | undefined;
  /** Rules without a `typePath`, which match every item. */
  readonly always: readonly Rule[];
  /** Rules grouped by `typePath`, so that one evaluation and one map lookup find the matching rules of a group. */
  readonly groups: readonly { readonly path: RulePath; readonly byType: ReadonlyMap<string, Rule> }[];
  readonly ownId: NameItem;
  readonly versionPath: RulePath | undefined;
  readonly itemOptions: Pick<ItemOptions, "hasGaps" | "isNewestFirst">;
}

/** Compiled definitions of a specific channel. */
export interface RuleSet extends CompiledDefinitions {
  readonly channel: ChannelIdentity;
  /** Stored topic names by type, only those that differ from the name a new topic would get. */
  readonly topics: ReadonlyMap<string, string>;
  /** Text before the encoded type in a topic's name. */
  readonly topicPrefix: string;
  /** The `source` of events whose sender does not set one. */
  readonly source: string;
}

const FIXED = "is fixed for this kind of channel";

/** Names an item by the delivery's id, or else the digest of its signed bytes, and the item's index. */
const nameByIndex: NameItem = ({ deliveryId, boundTo }, { index }) => {
  const delivery = deliveryId ?? boundTo;
  if (delivery === undefined) return undefined;
  const id = `${delivery}/${index}`;
  return { id, remembered: id };
};

/** Roots that `itemsPath` can use. */
const BODY_ROOTS = new Map([["body", BODY_ROOT]]);

/** Compiles the definitions of one channel; the error lists every invalid path. */
export function compileRules(
  { channel, topics, ...source }: RuleSource,
  pathCache?: PathCache,
): Result<RuleSet, readonly Finding[]> {
  const compiled = compileDefinitions(source, pathCache);
  return compiled.ok ? ok(createRuleSet(compiled.value, channel, topics)) : compiled;
}

/** Binds compiled definitions to a channel. @param topics the channel's stored topic names, by type */
export function createRuleSet(
  compiled: CompiledDefinitions,
  channel: ChannelIdentity,
  topics: ReadonlyMap<string, string> = NO_TOPICS,
): RuleSet {
  const topicPrefix = topicPrefixOf({ ...channel, channelUid: channel.uid });
  const renamed = [...topics].filter(([type, topic]) => topic !== topicPrefix + encodeType(type));
  return {
    ...compiled,
    channel,
    topicPrefix,
    source: formatSource(channel),
    topics: renamed.length === 0 ? NO_TOPICS : new Map(renamed),
  };
}

/**
 * Returns the `source` of a channel's events. Uses `join`, because V8 stores the result of a template literal as a rope, which each
 * delivery would flatten again.
 */
export const formatSource = ({ appId, uid }: Pick<ChannelIdentity, "appId" | "uid">): string =>
  ["", "apps", appId, "channels", uid].join("/");

/** Shared empty map, because nearly all channels have only topics with current names. */
const NO_TOPICS: ReadonlyMap<string, string> = new Map();

export const getRuleTopic = (
  { topics, topicPrefix }: Pick<RuleSet, "topics" | "topicPrefix">,
  { type, topicSuffix }: Pick<Rule, "type" | "topicSuffix">,
): string => (topics.size === 0 ? undefined : topics.get(type)) ?? topicPrefix + topicSuffix;

/**
 * Compiles definitions; the error lists every invalid path (`events[3].idPath`).
 *
 * @param pathCache shares compiled paths with other definitions; by default paths are not shared
 */
export function compileDefinitions(
  { profile, config, definitions, forms = "fields" }: DefinitionSource,
  pathCache?: PathCache,
): Result<CompiledDefinitions, readonly Finding[]> {
  const findings: Finding[] = [];
  const rooted = { syntax: config.pathSyntax, item: ITEM_ROOT };
  const compile = createPathReader({ ...rooted, named: profile.roots }, findings, pathCache);
  const compileBodyPath = createPathReader({ ...rooted, named: BODY_ROOTS }, findings, pathCache);
  const itemsPath = compileBodyPath(config.itemsPath, "config.itemsPath");
  if (config.itemsPath !== undefined && profile.readItems !== undefined) {
    findings.push({ path: "config.itemsPath", message: FIXED });
  }
  const itemOptions: ItemOptions = profile.itemOptions?.(config) ?? { hasGaps: false, isNewestFirst: false };
  const itemId = compile(itemOptions.itemId, "config.itemId");
  const versionPath = compile(itemOptions.versionPath, "config.versionPath");
  const always: Rule[] = [];
  const groups = new Map<string, { readonly path: RulePath; readonly byType: Map<string, Rule> }>();

  definitions.forEach((definition, index) => {
    const at = `events[${index}]`;
    const { type, schema } = definition;
    findings.push(...fixedPathFindings(definition, profile, at));
    const paths = profile.fixedPaths ?? definition;
    const typePath = compile(paths.typePath ?? undefined, `${at}.typePath`);
    const idPath = compile(paths.idPath ?? undefined, `${at}.idPath`) ?? itemId;
    const payloadPath = compile(paths.payloadPath, `${at}.payloadPath`);
    const rule: Rule = { index, type, topicSuffix: encodeType(type), idPath, payloadPath, schema };
    if (typePath === undefined) {
      always.push(rule);
      return;
    }
    const key = groupKey(typePath, profile);
    const group = groups.get(key) ?? { path: typePath, byType: new Map() };
    group.byType.set(rule.type, rule);
    groups.set(key, group);
  });

  if (findings.length > 0) return err(findings);
  return ok({
    config,
    profile,
    definitions,
    forms,
    itemsPath,
    always,
    groups: [...groups.values()],
    ownId: profile.ownId ?? nameByIndex,
    versionPath,
    itemOptions,
  });
}

/** Creates a compiler that compiles each distinct path once. It returns `undefined` for an invalid path and adds a finding. */
export function createPathReader(
  options: PathCompilerOptions<RootSource>,
  findings: Finding[],
  pathCache: PathCache = createPathCompiler,
): (text: string | undefined, at: string) => RulePath | undefined {
  const compile = pathCache(options);
  const compiled = new Map<string, ReturnType<typeof compile>>();
  return (text, at) => {
    if (text === undefined) return undefined;
    const result = compiled.get(text) ?? compile(text);
    compiled.set(text, result);
    if (result.ok) return result.value;
    findings.push({ path: at, message: result.error });
    return undefined;
  };
}

function groupKey({ root, path }: RulePath, { roots }: KindProfile): string {
  const name = [...roots].find(([, candidate]) => candidate === root)?.[0] ?? "";
  return `${name} ${path.kind} ${path.key}`;
}

function fixedPathFindings(definition: Definition, { fixedPaths }: KindProfile, at: string): Finding[] {
  if (fixedPaths === undefined) return [];
  return (["typePath", "idPath", "payloadPath"] as const)
    .filter((name) => definition[name] !== undefined && definition[name] !== fixedPaths[name])
    .map((name) => ({ path: `${at}.${name}`, message: FIXED }));
}
