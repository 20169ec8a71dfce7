import { createItemKey } from "../item-key.ts";
import type { PathReader } from "../paths.ts";
import type { Discriminator } from "../position.ts";
import type { PollingSettings } from "../settings-shape.ts";
import { createEtag, showEtag } from "./etag.ts";
import { createSeenSet, showSeenSet } from "./seen-set.ts";
import { createSequence, showSequence } from "./sequence.ts";
import type { DiscriminatorSettings } from "./settings.ts";
import { createTimestamp, showTimestamp } from "./timestamp.ts";
import { createToken, showToken } from "./token.ts";

/** The discriminator of a channel; undefined where one of its paths does not compile, which `paths` then tells. */
export function createDiscriminator(settings: PollingSettings, paths: PathReader): Discriminator | undefined {
  const { discriminator, order, startAt } = settings;
  const isNewestFirst = order === "descending";
  const idPath = paths.ofItem(settings.itemId, "itemId");
  const versionPath = paths.ofItem(settings.versionPath, "versionPath");
  const itemKey = createItemKey(idPath, versionPath);
  switch (discriminator.by) {
    case "timestamp": {
      const path = paths.ofItem(discriminator.path, "discriminator.path");
      return path && createTimestamp(discriminator, { path, itemKey, order, startAt });
    }
    case "sequence": {
      const path = paths.ofItem(discriminator.path, "discriminator.path");
      return path && createSequence(discriminator, { path, order, startAt });
    }
    case "seenSet": {
      const key = paths.ofItem(discriminator.key, "discriminator.key") ?? idPath;
      return createSeenSet(discriminator, {
        itemKey: createItemKey(key, versionPath),
        isNewestFirst,
        startAt,
      });
    }
    case "token": {
      const path = paths.ofPage(discriminator.path, "discriminator.path");
      const hasMorePath = paths.ofPage(discriminator.hasMorePath, "discriminator.hasMorePath");
      return createToken(discriminator, { path, hasMorePath, itemKey, isNewestFirst, startAt });
    }
    case "etag":
      return createEtag({ itemKey, isNewestFirst, startAt });
    default:
      return discriminator satisfies never;
  }
}

/** What a person sees of a stored position. */
export function showPosition(by: DiscriminatorSettings["by"], saved: unknown): unknown {
  switch (by) {
    case "timestamp":
      return showTimestamp(saved);
    case "sequence":
      return showSequence(saved);
    case "seenSet":
      return showSeenSet(saved);
    case "token":
      return showToken(saved);
    case "etag":
      return showEtag(saved);
    default:
      return by satisfies never;
  }
}
