import { z } from "zod";
import type { SettingType } from "./setting-types.ts";

/** Description of a setting in the documentation, in `--help` and in error messages. */
export interface SettingInfo {
  readonly name: string;
  /** Default value as text. If omitted, the setting is `undefined` by default. */
  readonly defaultText?: string;
  /** Describes the default in words, if `defaultText` is missing or unclear. */
  readonly unsetMeans?: string;
  readonly description: string;
  /** Whether the value is secret, so that it is never quoted. */
  readonly secret?: boolean;
}

export const infos = z.registry<SettingInfo>();

export function setting<T>(
  name: string,
  type: SettingType<T>,
  info: Omit<SettingInfo, "name"> & { readonly defaultText: string },
): z.ZodType<T, string | undefined> {
  return type.prefault(info.defaultText).register(infos, { name, ...info });
}

export function optional<T>(
  name: string,
  type: SettingType<T>,
  info: Omit<SettingInfo, "name" | "defaultText">,
): z.ZodType<T | undefined, string | undefined> {
  return type.optional().register(infos, { name, ...info });
}
