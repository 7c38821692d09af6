Feature: Our GPU nodes and driver-manager
  What a restart of the driver pod does to the nodes of the render farm.

  Background:
    Given the cluster "our-cluster"

  Rule: A node whose image brings a driver is left alone
    Scenario: The render nodes as they are
      Given the host "render-farm"
      When driver-manager runs
      Then the exit code is 1
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And no pod is evicted or deleted
      And all GPUs are on "nvidia"

  Rule: On the new image GPUs are taken from vfio-pci
    Scenario: A job runs on the node
      Given the host "fresh-image"
      When driver-manager runs
      Then the exit code is 0
      And all GPUs are on no driver
      And no label changes but those that are created empty
      And the node is schedulable
      And the pod "shot-42" is gone

    @since-v0.11.0 @nightly
    Scenario: A bump is looked at before it is made
      Given the host "fresh-image"
      When driver-manager runs
      Then the exit code is 0
