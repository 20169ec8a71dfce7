import { createDeliveryFailure, type ItemFailure } from "../../event/outcome.ts";

export const toNoRoute = (): ItemFailure => createDeliveryFailure("no_route", "there is no route key");

export const toNoInstall = (key: string): ItemFailure =>
  createDeliveryFailure("no_install", `no install of the blueprint has the route key ${JSON.stringify(key)}`);

export const toBehindHeld = (key: string): ItemFailure =>
  createDeliveryFailure(
    "no_install",
    `earlier items with the route key ${JSON.stringify(key)} are not published yet`,
  );

/** For a redriven item whose key an install owns. It waits until its turn in the order of the key. */
export const toRedriven = (key: string): ItemFailure =>
  createDeliveryFailure(
    "no_install",
    `the item was redriven with the route key ${JSON.stringify(key)} and is published in order of arrival`,
  );

/**
 * Returns whether the quarantine keeps all items with this failure or only the newest. Items that wait for an install are all kept. Replays
 * are not: otherwise, anyone with one signed delivery could fill the quarantine by sending it with many route keys.
 */
export const getKeep = ({ reason }: ItemFailure): "all" | "newest" =>
  reason === "no_route" || reason === "replayed" ? "newest" : "all";

export const REPLAYED_DETAIL = "the same signed bytes arrived earlier with another route key";
