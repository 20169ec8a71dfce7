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

/** A channel's definitions as they stand in its row: shapes are valid, types distinct. */
export interface RuleSource {
  readonly channel: ChannelIdentity;
  /** That of the channel's kind. */
  readonly profile: KindProfile;
  readonly config: CommonSettings;
  readonly definitions: readonly Definition[];
  /** The stored names of topics, by type; a type without one gets the name that it would be given now. */
  readonly topics?: ReadonlyMap<string, string>;
  /** Default: by their fields. */
  readonly forms?: FormReading;
}

/** A channel's settings and definitions, whichever channel has them. */
export type DefinitionSource = Omit<RuleSource, "channel" | "topics">;

export type RulePath = RootedPath<RootSource>;

/** One definition, compiled. */
export interface Rule {
  /** Its position among the channel's definitions, from 0: events keep that order. */
  readonly index: number;
  readonly type: string;
  /** The type as it stands in the name of its topic, unless that is one of before. */
  readonly topicSuffix: string;
  /** Its own, or that of all items of the channel. */
  readonly idPath: RulePath | undefined;
  /** Undefined: the whole item. */
  readonly payloadPath: RulePath | undefined;
  readonly schema: Definition["schema"];
}

/** Definitions compiled once, for all channels that have the same: nothing in it is a channel's own. */
export interface CompiledDefinitions extends Required<DefinitionSource> {
  readonly itemsPath: RulePath | undefined;
  /** Those without a `typePath`, which match every item. */
  readonly always: readonly Rule[];
  /** All definitions of one `typePath`: one evaluation and one look-up find those that match, however many there are. */
  readonly groups: readonly { readonly path: RulePath; readonly byType: ReadonlyMap<string, Rule> }[];
  readonly ownId: NameItem;
  readonly versionPath: RulePath | undefined;
  readonly itemOptions: Pick<ItemOptions, "hasGaps" | "isNewestFirst">;
}

/** Compiled definitions as those of a channel, ready to be run over every delivery of it. */
export interface RuleSet extends CompiledDefinitions {
  readonly channel: ChannelIdentity;
  /** The names of its topics, by type, where they are others than they would be now. */
  readonly topics: ReadonlyMap<string, string>;
  /** Stands before a type in the name of its topic. */
  readonly topicPrefix: string;
  /** The `source` of events whose sender names none. */
  readonly source: string;
}

const FIXED = "is fixed for this kind of channel";

/** The delivery's id, or what was signed, and the item's index in it. */
const nameByIndex: NameItem = ({ deliveryId, boundTo }, { index }) => {
  const delivery = deliveryId ?? boundTo;
  if (delivery === undefined) return undefined;
  const id = `${delivery}/${index}`;
  return { id, remembered: id };
};

/** The roots of `itemsPath`. */
const BODY_ROOTS = new Map([["body", BODY_ROOT]]);

/** Compiles the definitions of one channel, as `compileDefinitions` does. */
export function compileRules(
  { channel, topics, ...source }: RuleSource,
  pathsOf?: PathCache,
): Result<RuleSet, readonly Finding[]> {
  const compiled = compileDefinitions(source, pathsOf);
  return compiled.ok ? ok(createRuleSet(compiled.value, channel, topics)) : compiled;
}

/** Compiled definitions as those of a channel. @param topics the stored names of its topics, by type */
export function createRuleSet(
  compiled: CompiledDefinitions,
  channel: ChannelIdentity,
  topics: ReadonlyMap<string, string> = NO_TOPICS,
): RuleSet {
  const topicPrefix = topicPrefixOf({ ...channel, channelUid: channel.uid });
  const others = [...topics].filter(([type, topic]) => topic !== topicPrefix + encodeType(type));
  return {
    ...compiled,
    channel,
    topicPrefix,
    source: formatSource(channel),
    topics: others.length === 0 ? NO_TOPICS : new Map(others),
  };
}

/**
 * The `source` of a channel's events. Joined, as a template's text is kept in its pieces: those would be put together at each delivery
 * that compares or writes it.
 */
export const formatSource = ({ appId, uid }: Pick<ChannelIdentity, "appId" | "uid">): string =>
  ["", "apps", appId, "channels", uid].join("/");

/** One for all: nearly no channel has a topic that was named otherwise. */
const NO_TOPICS: ReadonlyMap<string, string> = new Map();

/** The topic of what a rule publishes. */
export const getRuleTopic = (
  { topics, topicPrefix }: Pick<RuleSet, "topics" | "topicPrefix">,
  { type, topicSuffix }: Pick<Rule, "type" | "topicSuffix">,
): string => (topics.size === 0 ? undefined : topics.get(type)) ?? topicPrefix + topicSuffix;

/**
 * Compiles definitions; the error lists every path that does not compile (`events[3].idPath`).
 *
 * @param pathsOf shares compiled paths with other definitions; default: with none.
 */
export function compileDefinitions(
  { profile, config, definitions, forms = "fields" }: DefinitionSource,
  pathsOf?: PathCache,
): Result<CompiledDefinitions, readonly Finding[]> {
  const findings: Finding[] = [];
  const rooted = { syntax: config.pathSyntax, item: ITEM_ROOT };
  const compile = createPathReader({ ...rooted, named: profile.roots }, findings, pathsOf);
  const ofBody = createPathReader({ ...rooted, named: BODY_ROOTS }, findings, pathsOf);
  const itemsPath = ofBody(config.itemsPath, "config.itemsPath");
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

/** Compiles each distinct path of a channel once, undefined for one that is wrong, of which the findings then tell. */
export function createPathReader(
  options: PathCompilerOptions<RootSource>,
  findings: Finding[],
  pathsOf: PathCache = createPathCompiler,
): (text: string | undefined, at: string) => RulePath | undefined {
  const compile = pathsOf(options);
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
