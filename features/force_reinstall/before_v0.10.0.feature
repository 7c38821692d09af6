@until-v0.9.1
Feature: Before v0.10.0 every run reinstalls
  There was no digest and no FORCE_REINSTALL: a loaded driver was always unloaded.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"

  Rule: The digest is not looked at

    @verified
    Scenario: The same digest does not help
      Recorded: digest-equal.
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Checking if the currently loaded NVIDIA driver"
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @verified
    Scenario: The variable is unknown, whatever its value
      Recorded: cli-force-space.
      Given the setting FORCE_REINSTALL is " true"
      When driver-manager runs
      Then the exit code is 0

    @verified
    Scenario: The flag is unknown
      Recorded: digest-different-force-flag.
      When driver-manager runs with the arguments --force-reinstall uninstall_driver
      Then the exit code is 1
      And the log is:
        """
        fatal: flag provided but not defined: -force-reinstall
        """
      And the API server is never asked
