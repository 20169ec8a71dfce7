import { SETTING_LIST } from "./schema.ts";
import type { SettingInfo } from "./setting.ts";

/** Renders the list of `inlet start --help`. */
export const renderSettingsHelp = (): string => SETTING_LIST.map(renderSetting).join("\n");

function renderSetting({ name, description, unsetMeans, defaultText }: SettingInfo): string {
  const fallback = unsetMeans ?? defaultText;
  return `  ${name}${fallback ? `  [${fallback}]` : ""}\n      ${description}`;
}
