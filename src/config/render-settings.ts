import { SETTING_LIST, type SettingInfo } from "./schema.ts";

/** Renders the table of the documentation page. */
export function renderSettingsTable(): string {
  const rows = SETTING_LIST.map(({ name, description, unsetMeans, defaultText, secret }) => {
    const fallback = unsetMeans ?? (defaultText ? `\`${defaultText}\`` : "");
    const cells = [`\`${name}\``, fallback, description + (secret ? " Secret." : "")];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| Setting | Default | Description |", "|---|---|---|", ...rows].join("\n");
}

/** Renders an example settings file. All settings are commented out, so the unedited file has no effect. */
export function renderExampleFile(): string {
  const blocks = SETTING_LIST.map(({ name, description, unsetMeans, defaultText = "" }) =>
    unsetMeans
      ? `# ${description} Default: ${unsetMeans}.\n#${name}=`
      : `# ${description}\n#${name}=${defaultText}`,
  );
  return `# Settings of Inlet. Copy this file, remove the # from each setting that you change, and start with
# \`npm start -- --config FILE\`. The environment wins over the file.

${blocks.join("\n\n")}
`;
}

/** Renders the list of `inlet start --help`. */
export const renderSettingsHelp = (): string => SETTING_LIST.map(renderSetting).join("\n");

function renderSetting({ name, description, unsetMeans, defaultText }: SettingInfo): string {
  const fallback = unsetMeans ?? defaultText;
  return `  ${name}${fallback ? `  [${fallback}]` : ""}\n      ${description}`;
}
