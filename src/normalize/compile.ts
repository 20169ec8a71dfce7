import { type BodyDecoding, type BodyReading, DEFAULT_READING } from "../event/body-reading.ts";
import type { ChannelConfig } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import { encodeType } from "../event/topic.ts";
import type { Finding } from "../lib/errors.ts";
import { err, ok, type Result } from "../lib/result.ts";
import { type FilterRoot, getFilterRoots } from "./filter.ts";
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
  QUERY_ROOT,
  type RootSource,
} from "./profile.ts";

/** Event definitions of a channel. They have been validated, and each has a different event type. */
export interface DefinitionSource {
  readonly profile: KindProfile;
  readonly config: ChannelConfig;
  readonly definitions: readonly Definition[];
  readonly reading?: BodyReading;
}

export type RulePath = RootedPath<RootSource>;

export interface AttributePaths {
  readonly time: RulePath | undefined;
  readonly subject: RulePath | undefined;
  readonly key: RulePath | undefined;
}

export interface Rule {
  /**
   * Position in the channel's list of event definitions, starting at 0. Determines the publishing order of the events from one
   * item.
   */
  readonly index: number;
  readonly type: string;
  /** The event type in encoded form, with which topic names end. Older topics have a stored name instead. */
  readonly topicSuffix: string;
  /** Path of the event's id. `undefined` uses the path that applies to all items of the channel. */
  readonly idPath: RulePath | undefined;
  /** Path of the event's payload. `undefined` if the whole item is the payload. */
  readonly payloadPath: RulePath | undefined;
  /** Paths of the CloudEvents attributes that the definition sets. `undefined` if it sets none. */
  readonly attributes: AttributePaths | undefined;
  readonly when: Definition["when"];
  readonly schema: Definition["schema"];
  /** The event type as a path segment of a URL, with which the CloudEvents `dataschema` ends. `undefined` if there is no schema. */
  readonly schemaSuffix: string | undefined;
}

/** Compiled event definitions without channel-specific data, so that channels with equal definitions can share them. */
export interface CompiledDefinitions extends Required<DefinitionSource> {
  /** Texts to decode in each body: `reading.decode` with its compiled path. */
  readonly decode: { readonly path: RulePath; readonly as: BodyDecoding["as"] } | undefined;
  readonly itemsPath: RulePath | undefined;
  /** Rules without a `typePath`, which match every item. */
  readonly always: readonly Rule[];
  /**
   * Definitions with a `typePath`, grouped by that path. Each group needs one path evaluation per item, and one map lookup per
   * value.
   */
  readonly groups: readonly { readonly path: RulePath; readonly byType: ReadonlyMap<string, Rule> }[];
  /** Values that a `when` sees in addition to the item, by name. */
  readonly filterRoots: readonly FilterRoot[];
  readonly ownId: NameItem;
  readonly versionPath: RulePath | undefined;
  /** Whether a path or a `when` reads the query. Only then must the query be valid in its character encoding. */
  readonly readsQuery: boolean;
  /** Whether a definition sets the time, subject or partition key of its events. */
  readonly setsAttributes: boolean;
  readonly itemOptions: Pick<ItemOptions, "hasGaps" | "isNewestFirst">;
  /** Paths of values that do not count when contents are compared (`dedupe.ignore`). `undefined` if all values count. */
  readonly ignored: readonly RulePath[] | undefined;
}

const FIXED = "must not be set, because this kind of channel uses a fixed path";

/**
 * Derives an item's id from the delivery id and the item's index. If the delivery has no id, the digest of the signed bytes is used
 * instead.
 */
const nameByIndex: NameItem = ({ deliveryId, boundTo }, { index }) => {
  const delivery = deliveryId ?? boundTo;
  if (delivery === undefined) return undefined;
  const id = `${delivery}/${index}`;
  return { id, remembered: id };
};

const BODY_ROOTS = new Map([["body", BODY_ROOT]]);
const NO_ROOTS: ReadonlyMap<string, RootSource> = new Map();

/**
 * Compiles event definitions. The error lists every invalid path, such as `events[3].idPath`.
 *
 * @param pathCache cache for sharing compiled paths with other definitions
 */
export function compileDefinitions(
  { profile, config, definitions, reading = DEFAULT_READING }: DefinitionSource,
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
  if (reading.decode !== undefined && profile.readItems !== undefined) {
    findings.push({
      path: "config.decode",
      message: "must not be set, because this kind of channel has a fixed format",
    });
  }
  const decodePath = compileBodyPath(reading.decode?.path, "config.decode.path");
  const itemOptions: ItemOptions = profile.itemOptions?.(config) ?? { hasGaps: false, isNewestFirst: false };
  const itemId = compile(itemOptions.itemId, "config.itemId");
  const versionPath = compile(itemOptions.versionPath, "config.versionPath");
  const compileIgnored = createPathReader({ ...rooted, named: NO_ROOTS }, findings, pathCache);
  const ignored = config.dedupe.ignore?.flatMap((text, index) => {
    const at = `config.dedupe.ignore[${index}]`;
    const path = compileIgnored(text, at);
    if (path !== undefined && selectsRoot(path)) {
      findings.push({
        path: at,
        message: "must select values inside of the item, because the item itself counts",
      });
    }
    return path ?? [];
  });
  const always: Rule[] = [];
  const groups = new Map<string, { readonly path: RulePath; readonly byType: Map<string, Rule> }>();

  definitions.forEach((definition, index) => {
    const at = `events[${index}]`;
    const { type, when, schema } = definition;
    findings.push(...fixedPathFindings(definition, profile, at));
    const paths = profile.fixedPaths ?? definition;
    const typePath = compile(paths.typePath ?? undefined, `${at}.typePath`);
    const idPath = compile(paths.idPath ?? undefined, `${at}.idPath`) ?? itemId;
    const payloadPath = compile(paths.payloadPath, `${at}.payloadPath`);
    const time = compile(definition.timePath, `${at}.timePath`);
    const subject = compile(definition.subjectPath, `${at}.subjectPath`);
    const key = compile(definition.keyPath, `${at}.keyPath`);
    const hasAttributes = [time, subject, key].some((path) => path !== undefined);
    const attributes = hasAttributes ? { time, subject, key } : undefined;
    const topicSuffix = encodeType(type);
    const schemaSuffix = schema === undefined ? undefined : encodeURIComponent(type.toWellFormed());
    const rule: Rule = {
      index,
      type,
      topicSuffix,
      idPath,
      payloadPath,
      attributes,
      when,
      schema,
      schemaSuffix,
    };
    if (typePath === undefined) {
      always.push(rule);
      return;
    }
    const groupName = groupKey(typePath, profile);
    const group = groups.get(groupName) ?? { path: typePath, byType: new Map() };
    group.byType.set(rule.type, rule);
    groups.set(groupName, group);
  });

  if (findings.length > 0) return err(findings);
  const groupList = [...groups.values()];
  const rules = [...always, ...groupList.flatMap(({ byType }) => [...byType.values()])];
  const filterRoots = getFilterRoots(profile);
  const isQueryFiltered =
    filterRoots.some(([, root]) => root === QUERY_ROOT) &&
    rules.some(({ when }) => JSON.stringify(when)?.includes('"query"'));
  const paths = [
    ...groupList.map(({ path }) => path),
    ...rules.flatMap((rule) => [
      rule.idPath,
      rule.payloadPath,
      rule.attributes?.time,
      rule.attributes?.subject,
      rule.attributes?.key,
    ]),
  ];
  return ok({
    config,
    profile,
    definitions,
    reading,
    decode: decodePath && reading.decode && { path: decodePath, as: reading.decode.as },
    itemsPath,
    always,
    groups: groupList,
    filterRoots,
    setsAttributes: rules.some(({ attributes }) => attributes !== undefined),
    readsQuery: isQueryFiltered || paths.some((path) => path?.root === QUERY_ROOT),
    ownId: profile.ownId ?? nameByIndex,
    versionPath,
    itemOptions,
    ignored,
  });
}

const selectsRoot = ({ path }: RulePath): boolean => path.kind === "singular" && path.key === "[]";

/**
 * Creates a function that compiles paths and memoizes the results. For an invalid path, the function records the error and returns
 * `undefined`.
 */
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

const PATHS = ["typePath", "idPath", "payloadPath", "timePath", "subjectPath", "keyPath"] as const;

function fixedPathFindings(definition: Definition, { fixedPaths }: KindProfile, at: string): Finding[] {
  if (fixedPaths === undefined) return [];
  const fixed: Pick<Definition, (typeof PATHS)[number]> = fixedPaths;
  return PATHS.filter((name) => definition[name] !== undefined && definition[name] !== fixed[name]).map(
    (name) => ({ path: `${at}.${name}`, message: FIXED }),
  );
}
