/** How a setting presents itself, wherever settings are listed. */
export interface SettingInfo {
  readonly name: string;
  /** What an unset setting is read from; without it, an unset one has no value. */
  readonly defaultText?: string;
  /** The default in words, where there is no text or the text says too little. */
  readonly unsetMeans?: string;
  readonly description: string;
  readonly secret: boolean;
}

/** For `--help`: a name and its default on one line, the description below. */
export function renderSettingsText(settings: readonly SettingInfo[]): string {
  return settings
    .map((setting) => {
      const fallback = setting.unsetMeans ?? setting.defaultText;
      return `  ${setting.name}${fallback ? `  [${fallback}]` : ""}\n      ${setting.description}`;
    })
    .join("\n");
}

/** GitHub-flavoured Markdown. */
export function renderSettingsMarkdown(settings: readonly SettingInfo[]): string {
  const rows = settings.map((setting) => {
    const fallback = setting.unsetMeans ?? (setting.defaultText ? `\`${setting.defaultText}\`` : "");
    const cells = [`\`${setting.name}\``, fallback, setting.description + (setting.secret ? " Secret." : "")];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| Setting | Default | What it does |", "|---|---|---|", ...rows].join("\n");
}

/** A settings file with every setting commented out, so that as it stands it changes nothing. */
export function renderSettingsFile(settings: readonly SettingInfo[], heading: readonly string[]): string {
  const blocks = settings.map((setting) => {
    const note = setting.unsetMeans ? ` Default: ${setting.unsetMeans}.` : "";
    const value = setting.unsetMeans ? "" : (setting.defaultText ?? "");
    return `# ${setting.description}${note}\n#${setting.name}=${value}`;
  });
  return `${[heading.map((line) => `# ${line}`).join("\n"), ...blocks].join("\n\n")}\n`;
}
