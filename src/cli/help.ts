import { SETTING_LIST, type SettingInfo } from "../settings.ts";

export function renderHelp(): string {
  return `Usage: inlet [--config FILE] [--apply FILE [--plan] | --rotate-master-key | --revoke-key KEY | --seal-addresses] [--help] [--version]

Receives events and publishes them, deduplicated, to Redis streams by topic.

  --config FILE   read settings from a file of NAME=value lines; environment variables take precedence
  --apply FILE    create and update the organizations, blueprints, apps and channels of a config file, then exit
  --plan          with --apply: show the changes without applying them
  --rotate-master-key
                  encrypt all stored secrets with INLET_NEW_MASTER_KEY, or with a new key in the data directory, then exit
  --revoke-key KEY
                  revoke an API key by its id or its prefix (ik_ and 8 characters), then exit
  --seal-addresses
                  remove plain-text channel addresses once no gateway of an earlier version is running, then exit

Settings, with their defaults:

${renderSettings()}
`;
}

export const renderSettings = (): string => SETTING_LIST.map(renderSetting).join("\n");

function renderSetting({ name, description, unsetMeans, defaultText }: SettingInfo): string {
  const fallback = unsetMeans ?? defaultText;
  return `  ${name}${fallback ? `  [${fallback}]` : ""}\n      ${description}`;
}
