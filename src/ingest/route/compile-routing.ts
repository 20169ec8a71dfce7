import type { ChannelConfig } from "../../event/channel.ts";
import type { StoredRouting } from "../../event/intake.ts";
import { UnavailableError } from "../../lib/errors.ts";
import type { RulePath } from "../../normalize/compile.ts";
import type { PathCache } from "../../normalize/paths/jsonpath.ts";
import type { KindProfile } from "../../normalize/profile.ts";
import { compileRoutes } from "../../normalize/routes.ts";

export interface Routes {
  /** Uid of the channel of each install that receives the items. */
  readonly channelUid: string;
  /** Paths of the route key. The first path that yields one decides. */
  readonly paths: readonly RulePath[];
  /** Whether to remember signed bytes with their route keys, because a path reads values that the signature does not cover. */
  readonly remembersKeys: boolean;
}

/** @throws UnavailableError if a path no longer compiles */
export function compileRouting(
  profile: KindProfile,
  config: ChannelConfig,
  { channel, routeBy, trustUnsigned }: StoredRouting,
  pathsOf: PathCache,
): Routes {
  const paths = compileRoutes(profile, config, routeBy, pathsOf);
  if (!paths.ok) throw new UnavailableError("an intake has paths that no longer compile");
  return { channelUid: channel, paths: paths.value, remembersKeys: trustUnsigned };
}
