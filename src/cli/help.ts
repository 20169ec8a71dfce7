import { SETTING_LIST, type SettingInfo } from "../settings.ts";

/** The text of `--help`. */
export function renderHelp(): string {
  return `Usage: inlet [--config FILE] [--apply FILE [--plan] | --rotate-master-key | --revoke-key KEY | --seal-addresses] [--help] [--version]

Takes events from webhooks to de-duplicated Redis streams by topic.

  --config FILE   read settings from a file of NAME=value lines; the environment wins over it
  --apply FILE    bring organizations, blueprints, apps and channels to what the file declares, and end
  --plan          with --apply: say what that would change, and change nothing
  --rotate-master-key
                  seal all stored secrets under INLET_NEW_MASTER_KEY, or a new key in the data directory, and end
  --revoke-key KEY
                  revoke an API key, named by its id or by its beginning (ik_ and 8 characters), and end
  --seal-addresses
                  once no gateway of a release from before runs: keep addresses of channels sealed only, and end

Settings, with their defaults:

${renderSettings()}
`;
}

export const renderSettings = (): string => SETTING_LIST.map(renderSetting).join("\n");

function renderSetting({ name, description, unsetMeans, defaultText }: SettingInfo): string {
  const fallback = unsetMeans ?? defaultText;
  return `  ${name}${fallback ? `  [${fallback}]` : ""}\n      ${description}`;
}
