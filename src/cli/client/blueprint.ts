import type { blueprint } from "../../resources/apps/blueprints/schema.ts";
import type { EntityOf } from "../../resources/kit/shape.ts";
import { usageError } from "../exit.ts";
import { escapeText } from "../output/escape.ts";
import type { Api } from "./api.ts";

export type Blueprint = EntityOf<typeof blueprint>;

/** Finds a blueprint by id or uid. @throws CommandError */
export async function findBlueprint(api: Api, named: string): Promise<Blueprint> {
  const { items } = await api.list<Blueprint>("/blueprints");
  const found = items.filter(({ id, uid }) => id === named || uid === named);
  const [one] = found;
  if (one !== undefined && found.length === 1) return one;
  const known = items.map(({ id, uid }) => `  ${id} ${escapeText(uid)}`).join("\n");
  throw usageError(
    one === undefined
      ? `There is no blueprint ${named}. Existing blueprints:\n${known}`
      : `Several blueprints have the uid ${named}. Use the id instead:\n${known}`,
  );
}
